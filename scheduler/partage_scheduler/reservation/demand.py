"""How many cards of which nodes to take from kubelet so that waiting pods fit.

Pods are placed one after the other in a simulation of the future cluster: cards already on their way count as shared,
and a pod that fits occupies its resources. Only for a pod that still fits nowhere are more cards simulated, node by
node: the fewest with which the usual decision succeeds. The real state is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import GPU, GpuPart, Inventory, NodeName, PodRequest, PodUid
from partage_plugins.api.reasons import Reason
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.cluster.what_if import WhatIf
from partage_scheduler.cycle import Cycle
from partage_scheduler.decision import Decision, FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.reservation.pods import RESOURCE

PODS: Final = 32
"""Most pods considered in one run."""
LOOKS: Final = 32
"""Most decisions tried for them in one run; the next run continues."""
_ELSEWHERE: Final = Reason("elsewhere", "another node is looked at")


class Want(Struct, frozen=True, kw_only=True):
    """Cards for one pod, on one node."""

    pod: PodUid
    node: NodeName
    cards: int


def wants(
    cycle: Cycle,
    waiting: Iterable[ApiPod],
    coming: Mapping[NodeName, int],
    unbound: Mapping[NodeName, int],
    now: float,
) -> list[Want]:
    """For pods in this order; `coming` are cards that will be shared anyway, some still `unbound`."""
    with cycle.cluster.what_if() as what_if:
        prospect = _Prospect(cycle, what_if, _free(cycle, coming, unbound), now)
        for node, count in coming.items():
            prospect.share(node, count)
        return [want for pod in tuple(waiting)[:PODS] if (want := prospect.at(pod)) is not None]


def _free(cycle: Cycle, coming: Mapping[NodeName, int], unbound: Mapping[NodeName, int]) -> dict[NodeName, int]:
    """Cards by node that kubelet can give and no reservation claims yet."""
    cluster, free = cycle.cluster, dict[NodeName, int]()
    for node in cluster.fleet.nodes:
        part, slot = cluster.inventory(node.name).part(GPU), cycle.decider.slots.known(node.name)
        if part is not None and part.reservable:
            left = cycle.predicates.free(slot, RESOURCE) - unbound.get(node.name, 0)
            free[node.name] = min(left, len(_kubelets(part)) - coming.get(node.name, 0))
    return {node: left for node, left in free.items() if left > 0}


class _Prospect:
    """One simulation of the future cluster."""

    def __init__(self, cycle: Cycle, what_if: WhatIf, free: dict[NodeName, int], now: float) -> None:
        self._cycle, self._imagined, self._free, self._now = cycle, what_if, free, now
        self._shared: dict[NodeName, int] = {}
        self._left = LOOKS

    def at(self, pod: ApiPod) -> Want | None:
        """The cards it needs; None if it fits without further ones, or nowhere."""
        try:
            request = self._cycle.request(pod)
            if GPU.name not in request.kinds or self._left <= 0 or self._is_placed(pod):
                return None
            barred = self._cycle.barred(pod, request, self._now)
            self._left -= 1
            decision = self._cycle.decider.decide(request, barred)
            want = None if decision is not None else self._more(pod, request, barred)
        except PluginBroken:
            raise
        except PartageError:  # the next scheduling attempt reports it to its owner
            return None
        if decision is not None:
            self._imagined.place(decision)
        return want

    def _is_placed(self, pod: ApiPod) -> bool:
        """Also true for a pod that resources are kept for."""
        cluster = self._cycle.cluster
        return cluster.placed_pods.get(pod.uid) is not None or cluster.kept.node_of(pod.uid) is not None

    def _more(self, pod: ApiPod, request: PodRequest, barred: Sequence[FilteredNodes]) -> Want | None:
        for node in self._candidates(barred):
            before = self._shared.get(node, 0)
            for more in range(1, self._free[node] + 1):
                decision = self._with(node, before + more, request, barred)
                if decision is not None:
                    self._imagined.place(decision)
                    self._free[node] -= more
                    return Want(pod=pod.uid, node=node, cards=more)
            self.share(node, before)
        return None

    def _with(
        self, node: NodeName, count: int, request: PodRequest, barred: Sequence[FilteredNodes]
    ) -> Decision | None:
        if self._left <= 0:
            return None
        self._left -= 1
        self.share(node, count)
        decider = self._cycle.decider
        return decider.decide(request, [*barred, FilteredNodes(_ELSEWHERE, ~decider.slots.flags((node,)))])

    def _candidates(self, barred: Sequence[FilteredNodes]) -> Iterator[NodeName]:
        """Fewest free cards first, so that kubelet keeps whole nodes."""
        slots, open_ = self._cycle.decider.slots, self._cycle.decider.unbarred(barred)
        for node in sorted(self._free, key=lambda name: (self._free[name], name)):
            slot = slots.of(node)
            if self._free[node] > 0 and slot is not None and open_[slot]:
                yield node

    def share(self, node: NodeName, count: int) -> None:
        """Simulates that this many of kubelet's cards are shared."""
        if self._shared.get(node, 0) == count or self._cycle.decider.slots.of(node) is None:
            return
        self._shared[node] = count
        self._imagined.equip(node, _with_shared(self._cycle.cluster.inventory(node), count))


def _kubelets(part: GpuPart) -> tuple[int, ...]:
    """Indexes of the cards that a reservation may get."""
    return tuple(
        place
        for place, card in enumerate(part.cards)
        if card.pool == "kubelet" and card.health == "ok" and card.reservation is None
    )


def _with_shared(inventory: Inventory, count: int) -> Inventory:
    part = inventory.part(GPU)
    if part is None:
        return inventory
    chosen = frozenset(_kubelets(part)[:count])
    cards = tuple(replace(card, pool="shared") if at in chosen else card for at, card in enumerate(part.cards))
    return replace(inventory, kinds={**inventory.kinds, GPU.name: replace(part, cards=cards)})
