"""Two containerds for critest alone, with all the images that it wants: one behind crishim, one direct.

`make test` runs critest through crishim and compares with the recorded list of tests that fail or are skipped directly
at containerd; `make test-all` also runs directly, which keeps that list true. A run mostly waits, so two at once take
as long as one. Each runtime has its runs one after the other: critest wants to be the only client, and no run may leave
something that disturbs the next. `make soak-rounds` has more of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from rig import critest
from rig.critest import Critest, Run
from rig.lone import LoneRuntime, lone_runtime
from support.crishim import ROUNDS, SOCKET, crishim, in_front

RUNS: Final = max(1, ROUNDS // 3)
"""Per way; every run has its own order of tests."""


@dataclass(frozen=True)
class Way:
    """A way to a runtime, and its critest runs by seed; most are running or queued."""

    runtime: LoneRuntime
    runs: Mapping[int, Future[Run]]

    def left(self) -> list[str]:
        """Files that the runs left behind, once they have ended."""
        return [path.name for path in (self.runtime.scratch / "tmp").iterdir()]


@pytest.fixture(scope="module")
def through() -> Iterator[Way]:
    """Through crishim, as on a node with cards.

    Without the guard, a request that names no allocation is not even parsed.
    """
    with (
        _alone() as runtime,
        in_front(runtime.machine, crishim("--guard", "on")),
        _running(runtime, SOCKET, range(1 + RUNS, 1 + 2 * RUNS)) as way,
    ):
        yield way


@pytest.fixture(scope="module")
def straight(through: Way) -> Iterator[Way]:
    """Directly, concurrently with the runs through crishim."""
    with _alone() as runtime, _running(runtime, runtime.socket, range(1, 1 + RUNS)) as way:
        yield way


@pytest.fixture(autouse=True)
def shared_rigs_as_before() -> None:
    """Compare nothing: all runs go on side by side, and each test only waits for one of them."""


@contextmanager
def _alone() -> Generator[LoneRuntime]:
    with lone_runtime(critest.images(), say=print) as runtime:
        yield runtime


@contextmanager
def _running(runtime: LoneRuntime, socket: str, seeds: Iterable[int]) -> Generator[Way]:
    one = Critest(runtime.programs["critest"], socket, runtime.scratch, runtime.machine.way_in)
    pool = ThreadPoolExecutor(1)
    try:
        yield Way(runtime, {seed: pool.submit(partial(critest.run, one, seed=seed, say=print)) for seed in seeds})
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a run that is cut off ends with its machine
