"""Many replays in parallel, each in a process that holds the workload already; the first error ends them all."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context

from msgspec import Struct

from partage_cli.simulation.policies import decider_with
from partage_cli.simulation.replay import Protocol, Replay
from partage_cli.simulation.results import ReplayResult
from partage_cli.simulation.typical import typical_of
from partage_cli.simulation.workloads import Workload, demand_milli
from partage_plugins.errors import PartageError, Refused


class Job(Struct, frozen=True):
    """One replay to run."""

    policy: str
    seed: int


class ReplayEnded(PartageError):
    """A replay process ended unexpectedly."""


class Replayer:
    """Runs jobs on one workload."""

    def __init__(self, workload: Workload, protocol: Protocol) -> None:
        self._workload, self._protocol = workload, protocol
        self._typical = typical_of(workload.requests)

    def run(self, job: Job) -> ReplayResult:
        """Run one job on an empty fleet."""
        decider, _ = decider_with(job.policy, self._typical)
        return Replay(self._workload, decider, self._typical, job.seed).run(job.policy, self._protocol)


def replay_all(
    workload: Workload,
    jobs: Sequence[Job],
    protocol: Protocol,
    *,
    processes: int,
    on_done: Callable[[ReplayResult], None],
) -> list[ReplayResult]:
    """All results in the order of `jobs`; `on_done` gets each as it ends. `Refused` if there is nothing to measure."""
    if not workload.cards:
        raise Refused(f"{workload.origin}: no node has a card; there is nothing to allocate")
    if not any(map(demand_milli, workload.requests)):
        raise Refused(f"{workload.origin}: no pod asks for a share of a card; there is nothing to replay")
    if min(processes, len(jobs)) <= 1:
        return [_heard(Replayer(workload, protocol).run(job), on_done) for job in jobs]
    with ProcessPoolExecutor(
        min(processes, len(jobs)), get_context("spawn"), initializer=_start, initargs=(workload, protocol)
    ) as pool:
        with _interrupts_held_back():
            futures = [pool.submit(_run, job) for job in jobs]
        try:
            for future in as_completed(futures):
                _heard(future.result(), on_done)
        except BrokenProcessPool:
            raise ReplayEnded("a process of the replay was ended; is there memory enough? Try --processes 1") from None
        finally:
            pool.shutdown(cancel_futures=True)
    return [future.result() for future in futures]


@contextmanager
def _interrupts_held_back() -> Generator[None]:
    """Block SIGINT, also in processes started meanwhile, until they can end without a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _heard(run: ReplayResult, on_done: Callable[[ReplayResult], None]) -> ReplayResult:
    on_done(run)
    return run


_replayer: Replayer | None = None
"""In a pool process: the replayer that `_start` created."""


def _start(workload: Workload, protocol: Protocol) -> None:
    global _replayer  # noqa: PLW0603  a pool gives its processes nothing else to keep things in
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt must not print a traceback from each process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _replayer = Replayer(workload, protocol)


def _run(job: Job) -> ReplayResult:
    if _replayer is None:
        raise RuntimeError("the pool's process was not started")
    return _replayer.run(job)
