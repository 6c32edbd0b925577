"""Generates a fleet and its pods with the statistics of a published production cluster for GPU sharing.

Fitted are: the kinds of nodes, the numbers of pods that request no card, a part of one, one, or several; the sizes of
parts; the CPU that goes with each; and how many require certain models. No rows of a trace are copied, so this can be
distributed with the program. The same seed generates the same workload everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from partage_cli.simulation.workloads import (
    GIB,
    WHOLE_MILLI,
    FleetNode,
    Workload,
    demand_milli,
    node_of,
    request_of,
)
from partage_plugins.api import GpuRequest, PodRequest, Resources

T = TypeVar("T")
Weighted = Sequence[tuple[T, float]]


class Mix(NamedTuple):
    """Parameters that differ between workloads."""

    name: str = "mixed"
    without_cards: float = 0.133
    """Fraction of all pods that request only CPU and memory."""
    shared: float = 0.436
    """Of the pods with cards, the fraction that requests less than one."""
    several: float = 0.011
    """Of the pods with cards, the fraction that requests more than one."""
    choosy: float = 0.0
    """Fraction that requires certain models."""


MIXED: Final = Mix()
CPU_HEAVY: Final = Mix(name="cpu-heavy", without_cards=0.25)
CHOOSY: Final = Mix(name="choosy", choosy=0.338)
ALL_SHARED: Final = Mix(name="all-shared", shared=1.0, several=0.0)


class _NodeKind(NamedTuple):
    model: str
    cards: int
    cpu_cores: int
    memory_gib: int


class _PodKind(NamedTuple):
    milli: int
    cpu_milli: Weighted[int]


_NODES: Final[Weighted[_NodeKind]] = (
    (_NodeKind("large", 8, 96, 384), 45.3),
    (_NodeKind("small", 2, 104, 512), 31.9),
    (_NodeKind("old", 2, 16, 120), 9.0),
    (_NodeKind("newest", 8, 128, 768), 3.2),
    (_NodeKind("middle", 4, 32, 128), 2.3),
    (_NodeKind("old", 2, 64, 256), 1.8),
    (_NodeKind("roomy", 8, 96, 768), 1.7),
    (_NodeKind("middle", 1, 8, 32), 1.6),
    (_NodeKind("small", 4, 96, 512), 1.4),
    (_NodeKind("roomy", 4, 48, 368), 0.8),
    (_NodeKind("middle", 8, 64, 336), 0.7),
    (_NodeKind("old", 1, 8, 60), 0.3),
)
_PARTS: Final[Weighted[_PodKind]] = (
    (_PodKind(810, ((3200, 1.0),)), 35.0),
    (_PodKind(470, ((12000, 0.52), (8000, 0.48))), 24.4),
    (_PodKind(320, ((4000, 0.73), (8000, 0.20), (1000, 0.07))), 10.7),
    (_PodKind(650, ((12000, 0.95), (8000, 0.05))), 8.2),
    (_PodKind(230, ((4000, 0.87), (8000, 0.13))), 4.5),
    (_PodKind(460, ((6000, 0.95), (12000, 0.05))), 4.2),
    (_PodKind(590, ((3200, 1.0),)), 2.4),
    (_PodKind(160, ((4000, 0.73), (6000, 0.27))), 2.4),
    (_PodKind(550, ((4200, 1.0),)), 2.3),
    (_PodKind(220, ((4000, 0.69), (8000, 0.31))), 2.0),
    (_PodKind(370, ((4200, 0.96), (2000, 0.04))), 1.5),
    (_PodKind(110, ((4000, 0.75), (6000, 0.25))), 0.8),
    (_PodKind(480, ((4000, 1.0),)), 0.6),
    (_PodKind(50, ((6000, 0.57), (4000, 0.43))), 1.0),
)
_WHOLE_CPU: Final[Weighted[int]] = (
    (11300, 22.3),
    (11400, 15.3),
    (3200, 12.0),
    (12000, 12.3),
    (18700, 6.5),
    (9800, 5.0),
    (8000, 4.2),
    (4000, 4.1),
    (15700, 4.0),
    (16000, 3.8),
    (14200, 2.4),
    (6000, 8.1),
)
_ALONE_CPU: Final[Weighted[int]] = (
    (12500, 33.6),
    (32000, 26.7),
    (8000, 17.0),
    (15400, 11.0),
    (16500, 8.7),
    (11400, 3.0),
)
_SEVERAL: Final[Weighted[tuple[int, int]]] = (
    ((8, 88000), 24.0),
    ((8, 64000), 28.0),
    ((8, 120000), 7.0),
    ((2, 16000), 14.0),
    ((2, 6000), 7.0),
    ((4, 32000), 16.0),
    ((4, 60000), 4.0),
)
_MODELS: Final[Weighted[tuple[str, ...]]] = (
    (("small",), 54.0),
    (("large",), 13.9),
    (("old",), 11.7),
    (("middle", "roomy"), 10.3),
    (("newest",), 3.6),
    (("large", "small", "middle", "roomy"), 6.5),
)
_MEMORY_BYTES_PER_CPU_MILLI: Final[Weighted[int]] = (
    (2 * GIB // 1000, 30.0),
    (4 * GIB // 1000, 62.0),
    (6 * GIB // 1000, 8.0),
)
_FULL: Final = 0.98
"""The requests of all pods together, as a fraction of all cards."""


def synthetic(nodes: int, seed: int = 0, mix: Mix = MIXED) -> Workload:
    """A fleet of `nodes` nodes, and pods that request nearly all of its cards."""
    chosen = random.Random(seed)  # noqa: S311  the same tomorrow
    fleet = tuple(_node(chosen, number) for number in range(nodes))
    wanted = _FULL * sum(len(node.cards) for node in fleet) * WHOLE_MILLI
    requests: list[PodRequest] = []
    asked = 0
    while asked < wanted:
        requests.append(_pod(chosen, mix))
        asked += demand_milli(requests[-1])
    origin = f"synthetic ({mix.name}, {nodes} nodes, seed {seed})"
    return Workload(origin=origin, nodes=fleet, requests=tuple(requests))


def _node(chosen: random.Random, number: int) -> FleetNode:
    kind = _one(chosen, _NODES)
    total = Resources(cpu_milli=kind.cpu_cores * 1000, memory_bytes=kind.memory_gib * GIB)
    return node_of(number, f"node-{number:05}", total, [kind.model] * kind.cards)


def _pod(chosen: random.Random, mix: Mix) -> PodRequest:
    if chosen.random() < mix.without_cards:
        return request_of(_room(chosen, _one(chosen, _ALONE_CPU)), None)
    kind = chosen.random()
    count, share = 1, WHOLE_MILLI
    if kind < mix.shared:
        part = _one(chosen, _PARTS)
        share, cpu_milli = part.milli, _one(chosen, part.cpu_milli)
    elif kind < mix.shared + mix.several:
        count, cpu_milli = _one(chosen, _SEVERAL)
    else:
        cpu_milli = _one(chosen, _WHOLE_CPU)
    models = _one(chosen, _MODELS) if chosen.random() < mix.choosy and count == 1 else ()
    return request_of(_room(chosen, cpu_milli), GpuRequest(count=count, share_milli=share, models=models))


def _room(chosen: random.Random, cpu_milli: int) -> Resources:
    return Resources(cpu_milli=cpu_milli, memory_bytes=cpu_milli * _one(chosen, _MEMORY_BYTES_PER_CPU_MILLI))


def _one(chosen: random.Random, weighted: Weighted[T]) -> T:
    values, weights = zip(*weighted, strict=True)
    return chosen.choices(values, weights)[0]  # type: ignore[no-any-return]  # zip forgets which column is which
