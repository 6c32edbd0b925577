"""Two containerds of critest's own, with all the images that it wants: one alone, one behind crishim.

A run waits more than it works, so two at once take as long as one. Each runtime has its runs one after the other:
critest wants to be the only client, and no run may leave what disturbs the next. `make soak-rounds` has more of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from rig import critest
from rig.critest import Critest, Run
from rig.lone import LoneRuntime, lone_runtime
from support.crishim import ROUNDS, SOCKET, crishim, in_front

RUNS: Final = max(1, ROUNDS // 3)
"""On each way; every run has an order of its own."""


@dataclass(frozen=True)
class Way:
    """A way to a runtime, and the runs of critest on it by their seed; most have not ended, or not begun."""

    runtime: LoneRuntime
    runs: Mapping[int, Future[Run]]


@pytest.fixture(scope="module")
def ways() -> Iterator[Mapping[str, Way]]:
    with ExitStack() as ends:
        straight = ends.enter_context(_alone())
        through = ends.enter_context(_alone())
        # As on a node with cards: without the guard, a request that names no allocation is not even parsed.
        ends.enter_context(in_front(through.machine, crishim("--guard", "on")))
        sockets = {"straight": (straight, straight.socket), "through": (through, SOCKET)}
        yield {
            name: Way(runtime, ends.enter_context(_runs(runtime, at, range(first, first + RUNS))))
            for first, (name, (runtime, at)) in zip((1, 1 + RUNS), sockets.items(), strict=True)
        }


@pytest.fixture(autouse=True)
def shared_rigs_as_before() -> None:
    """Nothing is compared here: all runs go on side by side, and each test only waits for one of them."""


@contextmanager
def _alone() -> Generator[LoneRuntime]:
    with lone_runtime(critest.images(), say=print) as runtime:
        yield runtime


@contextmanager
def _runs(runtime: LoneRuntime, socket: str, seeds: Iterable[int]) -> Generator[Mapping[int, Future[Run]]]:
    one = Critest(runtime.programs["critest"], socket, runtime.scratch, runtime.machine.way_in)
    pool = ThreadPoolExecutor(1)
    try:
        yield {seed: pool.submit(partial(critest.run, one, seed=seed, say=print)) for seed in seeds}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # one that is cut off ends with its machine
