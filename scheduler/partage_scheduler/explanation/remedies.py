"""Changes that would make a pod fit: removes one obstacle at a time, and decides again.

Reserves nothing. Only single changes are tried; a pod that needs two at once gets none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import GPU, GpuRequest, NodeName, PodRequest, Reason, Resources
from partage_plugins.api.names import grantee_in_words
from partage_plugins.errors import PartageError
from partage_scheduler.decision import Decider, FilteredNodes


class Remedy(Struct, frozen=True, kw_only=True):
    """One change after which it would fit, and where it would go."""

    change: str
    node: NodeName


def helps(
    decider: Decider, request: PodRequest, barred: Sequence[FilteredNodes], *, hopeless: Collection[Reason] = ()
) -> Iterator[Remedy]:
    """`hopeless` are reasons that no change to a node removes."""
    for reason in dict.fromkeys(each.reason for each in barred if each.reason not in hopeless):
        rest = [each for each in barred if each.reason != reason]
        if (node := _node(decider, request, rest)) is not None:
            yield Remedy(change=f"this out of its way: {reason}", node=node)
    yield from _other_models(decider, request, barred)
    yield from _less_room(decider, request, barred)
    yield from _less_of_cards(decider, request, barred)


def _other_models(decider: Decider, request: PodRequest, barred: Sequence[FilteredNodes]) -> Iterator[Remedy]:
    for name, wanted in request.of(GPU).items():
        any_model = replace(wanted, models=(), models_not=(), model_parts=(), model_parts_not=())
        if any_model != wanted and (node := _node(decider, _with(request, name, any_model), barred)) is not None:
            yield Remedy(change=f"{grantee_in_words(name)}: any model of card", node=node)


def _less_room(decider: Decider, request: PodRequest, barred: Sequence[FilteredNodes]) -> Iterator[Remedy]:
    """The node that lacks the least memory and CPU, if it lacks nothing else."""
    fits = np.isfinite(decider.weigh(replace(request, needs=Resources()))) & decider.unbarred(barred)
    lacking = [
        (_lacking(decider.free(node), request.needs), node)
        for node in map(decider.slots.name, np.flatnonzero(fits).tolist())
    ]
    (memory, cpu), node = min(lacking, default=((0, 0), NodeName("")))
    if memory or cpu:
        words = [f"{cpu} milli of CPU less"] * bool(cpu) + [f"{memory} bytes of main memory less"] * bool(memory)
        yield Remedy(change=" and ".join(words), node=node)


def _lacking(free: Resources, needs: Resources) -> tuple[int, int]:
    lacks_memory = max(0, needs.memory_bytes - free.memory_bytes) if needs.memory_bytes else 0
    lacks_cpu = max(0, needs.cpu_milli - free.cpu_milli) if needs.cpu_milli else 0
    return lacks_memory, lacks_cpu


def _less_of_cards(decider: Decider, request: PodRequest, barred: Sequence[FilteredNodes]) -> Iterator[Remedy]:
    """The most that each container could have of a card, if the others got what they request."""
    for name, wanted in request.of(GPU).items():

        def with_share(milli: int, wanted: GpuRequest = wanted, name: str = name) -> PodRequest:
            return _with(request, name, replace(wanted, share_milli=milli))

        def with_memory(mib: int, wanted: GpuRequest = wanted, name: str = name) -> PodRequest:
            return _with(request, name, replace(wanted, memory_bytes=mib << 20))

        found = _most(decider, barred, with_share, wanted.share_milli)
        if found is not None:
            yield Remedy(
                change=f"{grantee_in_words(name)}: a share of at most {found[0]} milli of a card", node=found[1]
            )
        if wanted.memory_bytes is not None:
            found = _most(decider, barred, with_memory, wanted.memory_bytes >> 20)
            if found is not None:
                yield Remedy(change=f"{grantee_in_words(name)}: at most {found[0]}Mi of a card's memory", node=found[1])


def _most(
    decider: Decider, barred: Sequence[FilteredNodes], with_amount: Callable[[int], PodRequest], asked: int
) -> tuple[int, NodeName] | None:
    """The largest amount below `asked` that fits somewhere, and where."""
    lowest, highest, found = 1, asked - 1, None
    while lowest <= highest:
        middle = (lowest + highest) // 2
        node = _node(decider, with_amount(middle), barred)
        if node is None:
            highest = middle - 1
        else:
            found, lowest = (middle, node), middle + 1
    return found


def _with(request: PodRequest, name: str, wanted: GpuRequest) -> PodRequest:
    containers = tuple(
        replace(each, asks=tuple((kind, wanted if kind == GPU.name else ask) for kind, ask in each.asks))
        if each.name == name
        else each
        for each in request.containers
    )
    return replace(request, containers=containers)


def _node(decider: Decider, request: PodRequest, barred: Sequence[FilteredNodes]) -> NodeName | None:
    try:
        decision = decider.decide(request, barred)
    except PartageError:
        return None
    return None if decision is None else decision.node
