"""The cases that verify the guarantees on shares, for tests and benchmarks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.policies import Gemini
from support.lease_simulation.cases import Case, Container
from support.lease_simulation.figures import Figures
from support.lease_simulation.workloads import US, Workload, flood, inference, launch_and_wait, mixed
from support.lease_simulation.world import run

SPLITS: Final = ((500, 500), (300, 700), (100, 900), (250, 750), (333, 333, 333), (200,) * 5)
KINDS: Final[Mapping[str, tuple[Workload, int]]] = {
    "flood of 10 us": (flood(10 * US), 1),
    "flood of 1 ms": (flood(MS), 1),
    "launch and wait": (launch_and_wait(MS), 1),
    "graphs": (mixed(2 * MS, 3 * MS, 5 * MS), 1),
    "mixed kernels": (mixed(10 * US, MS, 30 * MS), 1),
    "four processes": (launch_and_wait(MS), 4),
}
"""Workloads with their numbers of processes; graphs cost what was learned for their launches."""

PUBLISHED: Final = Gemini()
KUBESHARE: Final = Gemini(quota_ns=300 * MS, least_ns=20 * MS)
"""The parameters with which KubeShare starts it."""


class Judged(NamedTuple):
    """The result of one case."""

    worst: float
    """Largest deviation of a share from its target."""
    sigma: float
    """Largest standard deviation of the shares of single seconds."""
    total: float
    """Relative to what the workload reaches alone and unmetered."""
    figures: Figures


def alone(kind: str, policy: str = "free-run") -> float:
    """The share that a single container reaches."""
    workload, processes = KINDS[kind]
    return run(Case((Container(1000, workload, processes=processes),), policy=policy, lasts_ns=3 * SECOND)).total


def split(shares: tuple[int, ...], kind: str, *, policy: str = "virtual-time", seconds: int = 8) -> Judged:
    """Containers with these shares and the same workload."""
    workload, processes = KINDS[kind]
    containers = tuple(Container(share, workload, processes=processes) for share in shares)
    return judged(Case(containers, policy, seconds * SECOND), alone(kind))


def long_beside_short(shares: tuple[int, ...], *, policy: str = "virtual-time", seconds: int = 16) -> Judged:
    """The first container has kernels of 30 ms, the others of 1 ms."""
    first, *others = shares
    containers = (Container(first, flood(30 * MS)), *(Container(share, flood(MS)) for share in others))
    return judged(Case(containers, policy, seconds * SECOND), 1.0)


def answers(policy: str = "virtual-time", seconds: int = 20, gemini: Gemini = PUBLISHED) -> Figures:
    """Inference of 6 ms every 30 ms beside training."""
    containers = (Container(300, inference()), Container(700, flood(300 * US)))
    return run(Case(containers, policy, seconds * SECOND, gemini=gemini))


def judged(case: Case, reachable: float) -> Judged:
    """Compare shares with their targets, as fractions of what can be reached."""
    figures, promised = run(case), sum(each.share for each in case.containers)
    both = zip(case.containers, figures.shares, strict=True)
    off = [abs(got - each.share / promised * reachable) for each, got in both]
    return Judged(max(off), max(figures.sigmas), figures.total / reachable, figures)
