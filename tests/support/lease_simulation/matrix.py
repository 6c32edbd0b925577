"""The cases by which promises about shares are judged; tests and benchmarks run the same ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.leases.policies import Gemini
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
"""Workloads and their processes; graphs cost what their launches were learned to."""

PUBLISHED: Final = Gemini()
KUBESHARE: Final = Gemini(quota_ns=300 * MS, least_ns=20 * MS)
"""As KubeShare starts it."""


class Judged(NamedTuple):
    """One case, and what came out of it."""

    worst: float
    """How far the worst share is from what it should be."""
    sigma: float
    """Of the shares of single seconds; the largest."""
    total: float
    """Of what the workload reaches where nobody meters it and nobody else is there."""
    figures: Figures


def alone(kind: str, policy: str = "free-run") -> float:
    """What one container reaches for itself."""
    workload, processes = KINDS[kind]
    return run(Case((Container(1000, workload, processes=processes),), policy=policy, lasts_ns=3 * SECOND)).total


def split(shares: tuple[int, ...], kind: str, *, policy: str = "virtual-time", seconds: int = 8) -> Judged:
    """Containers with those shares that all launch the same."""
    workload, processes = KINDS[kind]
    containers = tuple(Container(share, workload, processes=processes) for share in shares)
    return judged(Case(containers, policy, seconds * SECOND), alone(kind))


def long_beside_short(shares: tuple[int, ...], *, policy: str = "virtual-time", seconds: int = 16) -> Judged:
    """The first has kernels of 30 ms, the others of 1 ms."""
    first, *others = shares
    containers = (Container(first, flood(30 * MS)), *(Container(share, flood(MS)) for share in others))
    return judged(Case(containers, policy, seconds * SECOND), 1.0)


def answers(policy: str = "virtual-time", seconds: int = 20, gemini: Gemini = PUBLISHED) -> Figures:
    """Inference of 6 ms each 30 ms beside training."""
    containers = (Container(300, inference()), Container(700, flood(300 * US)))
    return run(Case(containers, policy, seconds * SECOND, gemini=gemini))


def judged(case: Case, reachable: float) -> Judged:
    """Shares against what was promised, of what can be reached."""
    figures, promised = run(case), sum(each.share for each in case.containers)
    both = zip(case.containers, figures.shares, strict=True)
    off = [abs(got - each.share / promised * reachable) for each, got in both]
    return Judged(max(off), max(figures.sigmas), figures.total / reachable, figures)
