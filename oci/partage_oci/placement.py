"""Places pods on this machine's cards, with the scheduler's own decider over one node.

A container of Docker is a pod of its own here. Placing a pod counts it immediately, so of two decisions the second sees
the first. Pure; single-threaded. CPU and main memory are not counted: the node's allocatable is set too large to run
out.
"""

from __future__ import annotations

from typing import Final

from partage_oci.shortage import CardRoom, NoRoom, shortage
from partage_plugins.api import (
    GPU,
    Allocation,
    GpuPart,
    Inventory,
    NodeName,
    Pod,
    PodRequest,
    PodUid,
    Resources,
)
from partage_plugins.api.card_memory import Promised, together
from partage_plugins.api.usage import usages
from partage_plugins.errors import Refused
from partage_plugins.registry.registry import Registry
from partage_scheduler.core import decider_over

_ROOM: Final = Resources(cpu_milli=1 << 40, memory_bytes=1 << 60)
GEN: Final = 1
"""The generation of every allocation, since each create gets a new allocation."""
_EMPTY: Final = Inventory(kinds={})
_KUBERNETES: Final = "kubernetes.io/"


class Placement:
    """Tracks and places grants on this machine's cards."""

    def __init__(self, node: NodeName, registry: Registry) -> None:
        self._node = node
        self._decider, self._side = decider_over(registry)
        self._decider.add_node(node, _EMPTY, _ROOM)
        self._inventory = _EMPTY

    def request(self, pod: Pod) -> PodRequest:
        """The pod's request; raises errors of dialects, and `Refused` for resources that nothing here provides."""
        request = self._side.requests(pod)
        self._require_answered(pod, request)
        return request

    def place(self, request: PodRequest) -> Allocation | NoRoom:
        """Allocate cards, which the pod then holds, or return why there are none; raises errors of plugins."""
        decision = self._decider.decide(request)
        if decision is None:
            return self._no_room(request)
        allocation = decision.allocation
        self.hold(allocation)
        return allocation

    def why_not(self, request: PodRequest) -> NoRoom | None:
        """Why it does not fit now, or None if it does. Nothing is allocated."""
        return None if self._decider.decide(request) is not None else self._no_room(request)

    def hold(self, allocation: Allocation) -> None:
        """Count the allocation of a pod that was placed before."""
        self.release(allocation.pod)
        self._decider.take(allocation, Resources())

    def release(self, uid: PodUid) -> None:
        self._decider.give_back(uid)

    def take_in(self, inventory: Inventory) -> None:
        """Replace the inventory; existing allocations stay."""
        if inventory != self._inventory:
            self._inventory = inventory
            self._decider.replace_inventory(self._node, inventory)

    @property
    def cards(self) -> GpuPart | None:
        return self._inventory.part(GPU)

    def rooms(self) -> tuple[CardRoom, ...]:
        part = self.cards
        if part is None:
            return ()
        milli, memory = dict.fromkeys((card.id for card in part.cards), 0), dict[str, list[Promised]]()
        for _, allocation in self._decider.ledger.allocations():
            for usage in usages(allocation):
                milli[usage.card] = milli.get(usage.card, 0) + usage.share_milli
                memory.setdefault(usage.card, []).append(usage.memory)
        return tuple(CardRoom(card, milli[card.id], together(memory.get(card.id, ()))) for card in part.cards)

    def _require_answered(self, pod: Pod, request: PodRequest) -> None:
        """Refuse a resource that only a cluster's device plugin would provide, rather than ignore it."""
        known = self._side.resources()
        for container in pod.containers:
            for name in container.limits:
                if (
                    "/" in name
                    and _KUBERNETES not in name
                    and name not in known
                    and container.name not in request.asking
                ):
                    raise Refused(
                        f"container {container.name} asks for {name}, which nothing on this machine gives; "
                        "say partage.dev/gpu-milli or partage.dev/gpu-memory"
                    )

    def _no_room(self, request: PodRequest) -> NoRoom:
        reason = self._decider.said_of(request, self._node)
        return shortage(reason, tuple(request.of(GPU).values()), self.rooms())
