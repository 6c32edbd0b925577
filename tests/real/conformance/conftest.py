"""Two containerds of critest's own, with all the images that it wants: one alone, one behind crishim.

A run waits more than it works, so two at once take as long as one. Each runtime has its runs one after the other:
critest wants to be the only client, and no run may leave what disturbs the next. `make soak-rounds` has more of them.

No code of ours has a part in a run straight at containerd, so a plain run takes a good one that is remembered for just
these programs, images and machine, and says so; `make test-all` always runs it anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from _pytest.capture import CaptureManager

from rig import critest
from rig.critest import Critest, Remembered, Run
from rig.lone import LoneRuntime, lone_runtime
from rig.programs import ensure
from support.crishim import ROUNDS, SOCKET, crishim, figures, in_front
from support.extent import is_all

RUNS: Final = max(1, ROUNDS // 3)
"""On each way; every run has an order of its own."""
MAY_BE_REMEMBERED: Final = not is_all() and "TEST_ROUNDS" not in os.environ
Say = Callable[[str], None]


@dataclass(frozen=True)
class Way:
    """A way to a runtime, and the runs of critest on it by their seed; most have not ended, or not begun."""

    runs: Mapping[int, Future[Run]]
    runc: Path
    left: Callable[[], list[str]]
    """The files that the runs left, once they have ended."""


@pytest.fixture(scope="module")
def say(request: pytest.FixtureRequest) -> Say:
    """Past pytest's capture: what is said is in the output of a run that passes, too."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert isinstance(capture, CaptureManager)

    def said(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", flush=True)  # noqa: T201

    return said


@pytest.fixture(scope="module")
def through() -> Iterator[LoneRuntime]:
    """As on a node with cards: without the guard, a request that names no allocation is not even parsed."""
    with _alone() as runtime, in_front(runtime.machine, crishim("--guard", "on")):
        yield runtime


@pytest.fixture(scope="module")
def ways(through: LoneRuntime, say: Say) -> Iterator[Mapping[str, Way]]:
    with ExitStack() as ends:
        straight = ends.enter_context(_straight(say))
        seeds = range(1 + RUNS, 1 + 2 * RUNS)
        yield {"straight": straight, "through": ends.enter_context(_running(through, SOCKET, seeds))}


@pytest.fixture
def counted(through: LoneRuntime) -> Callable[[], dict[str, float]]:
    """What crishim has counted by now."""
    return partial(figures, through.machine)


@contextmanager
def _straight(say: Say) -> Generator[Way]:
    key, runc = _key(), ensure("runc")["runc"]
    found = critest.recalled(key) if MAY_BE_REMEMBERED else None
    if found is not None:
        say(f"critest straight at containerd: remembered from {found.at}, key {key}")
        yield _remembered(found, runc)
        return
    with _alone() as runtime, _running(runtime, runtime.socket, range(1, 1 + RUNS)) as way:
        yield way
        _remember(key, way, say)


def _key() -> str:
    programs = ensure("default")
    return critest.key_of_straight(programs, critest.images(), critest.probe(programs["runc"]), seed=1)


def _remembered(found: Remembered, runc: Path) -> Way:
    done: Future[Run] = Future()
    done.set_result(found.run)
    return Way({found.run.seed: done}, runc, lambda: list(found.left))


def _remember(key: str, way: Way, say: Say) -> None:
    """The first run, if it is good."""
    if _is_good(way.runs[1], way):
        critest.remember(key, way.runs[1].result(), ())
        say(f"critest straight at containerd: a good run, remembered under the key {key}")


def _is_good(run: Future[Run], way: Way) -> bool:
    if not run.done() or run.exception() is not None or way.left():
        return False
    return not critest.judge(run.result(), critest.exemptions(), critest.probe(way.runc))


@pytest.fixture(autouse=True)
def shared_rigs_as_before() -> None:
    """Nothing is compared here: all runs go on side by side, and each test only waits for one of them."""


@contextmanager
def _alone() -> Generator[LoneRuntime]:
    with lone_runtime(critest.images(), say=print) as runtime:
        yield runtime


@contextmanager
def _running(runtime: LoneRuntime, socket: str, seeds: Iterable[int]) -> Generator[Way]:
    one = Critest(runtime.programs["critest"], socket, runtime.scratch, runtime.machine.way_in)
    pool = ThreadPoolExecutor(1)
    try:
        runs = {seed: pool.submit(partial(critest.run, one, seed=seed, say=print)) for seed in seeds}
        yield Way(runs, runtime.programs["runc"], lambda: [path.name for path in (runtime.scratch / "tmp").iterdir()])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # one that is cut off ends with its machine
