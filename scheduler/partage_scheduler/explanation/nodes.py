"""One pod compared with every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from partage_plugins.api import GPU, GpuRequest, NodeName, PodRequest, Reason, Resources
from partage_scheduler.cycle import Cycle, Unschedulable
from partage_scheduler.decision import INSUFFICIENT, FilteredNodes
from partage_scheduler.decision.free_resources import INSUFFICIENT_CPU, INSUFFICIENT_MEMORY
from partage_scheduler.explanation.cards import CardReport, cards_of
from partage_scheduler.explanation.remedies import Remedy, helps
from partage_scheduler.objects import ApiPod


class NodeReport(Struct, frozen=True, kw_only=True):
    node: NodeName
    reasons: tuple[str, ...]
    """All reasons, not only the first; empty if the pod fits."""
    codes: tuple[str, ...]
    """Their codes, for programs."""
    free: Resources
    """CPU and main memory that no pod holds."""
    cards: tuple[CardReport, ...]


class Explained(Struct, frozen=True, kw_only=True):
    message: str
    """The message on the pod; empty if it fits."""
    goes_to: NodeName | None
    """The node it would be placed on now."""
    needs: Resources
    nodes: tuple[NodeReport, ...]
    """Fewest reasons first, then by name."""
    helps: tuple[Remedy, ...]
    """Single changes after which it would fit."""
    absent: tuple[str, ...] = ()
    """Resources that it requests, no node has, and no plugin handles."""
    asks: bool = True
    """Whether it requests devices in a dialect that plugins read."""


def explain(cycle: Cycle, pod: ApiPod, now: float) -> Explained:
    """Everything about one waiting pod; raises if its request is invalid. Reserves nothing."""
    request = cycle.request(pod)
    verdict = cycle.weigh(pod, now)
    barred = cycle.barred(pod, request, now)
    stays, absent = isinstance(verdict, Unschedulable), cycle.predicates.absent(pod)
    hopeless = tuple(map(INSUFFICIENT.of, absent))
    nodes = (_node_stands(cycle, request, barred, each.name) for each in cycle.cluster.fleet.nodes)
    return Explained(
        message=verdict.message if isinstance(verdict, Unschedulable) else "",
        goes_to=None if isinstance(verdict, Unschedulable) else verdict.node,
        needs=request.needs,
        nodes=tuple(sorted(nodes, key=lambda each: (len(each.reasons), each.node))),
        helps=tuple(helps(cycle.decider, request, barred, hopeless=hopeless)) if stays else (),
        absent=absent,
        asks=bool(request.containers),
    )


def _node_stands(cycle: Cycle, request: PodRequest, barred: Sequence[FilteredNodes], node: NodeName) -> NodeReport:
    reasons = tuple(dict.fromkeys(_reasons(cycle, request, barred, node)))
    return NodeReport(
        node=node,
        reasons=tuple(map(str, reasons)),
        codes=tuple(each.code for each in reasons),
        free=cycle.decider.free(node),
        cards=cards_of(cycle.cluster.inventory(node), cycle.cluster.holders(node), _largest(request)),
    )


def _reasons(cycle: Cycle, request: PodRequest, barred: Sequence[FilteredNodes], node: NodeName) -> Iterator[Reason]:
    decider, slot = cycle.decider, cycle.decider.slots.of(node)
    yield from (each.reason for each in barred if slot is not None and each.flags(decider.slots.end)[slot])
    free, needs = decider.free(node), request.needs
    if 0 < needs.cpu_milli > free.cpu_milli:
        yield INSUFFICIENT_CPU
    if 0 < needs.memory_bytes > free.memory_bytes:
        yield INSUFFICIENT_MEMORY
    said = decider.said_of(request, node)
    if said is not None:
        yield said


def _largest(request: PodRequest) -> GpuRequest | None:
    """The container that is hardest to place, which represents all."""
    return max(request.of(GPU).values(), key=lambda ask: (ask.count, ask.share_milli), default=None)
