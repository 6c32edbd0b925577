"""Which cards a pod gets on this machine: the scheduler's own decider over one node.

A container of Docker is a pod of its own here. Placing a pod counts it at once, so that of two decisions the second
sees the first. Pure; one thread. CPU and main memory are not counted: the room has a size that never lacks.
"""

from __future__ import annotations

from typing import Final

from partage_oci.shortage import CardRoom, NoRoom, shortage
from partage_plugins.errors import Refused
from partage_plugins.registry.registry import Registry
from partage_plugins.vocabulary import (
    GPU,
    Allocation,
    GpuPart,
    Inventory,
    NodeName,
    Pod,
    PodRequest,
    PodUid,
    Room,
)
from partage_plugins.vocabulary.card_memory import Promised, together
from partage_plugins.vocabulary.usage import usages
from partage_scheduler.core import decider_over

_ROOM: Final = Room(cpu_milli=1 << 40, memory_bytes=1 << 60)
GEN: Final = 1
"""Of every allocation: each create is another one."""
_EMPTY: Final = Inventory(kinds={})
_KUBERNETES: Final = "kubernetes.io/"


class Placement:
    """Who holds what of this machine's cards."""

    def __init__(self, node: NodeName, registry: Registry) -> None:
        self._node = node
        self._decider, self._side = decider_over(registry)
        self._decider.add_node(node, _EMPTY, _ROOM)
        self._inventory = _EMPTY
        self._held: dict[PodUid, Allocation] = {}

    def request(self, pod: Pod) -> PodRequest:
        """What it asks for; raises what dialects raise, and `Refused` for devices that nothing here gives."""
        request = self._side.requests(pod)
        self._require_answered(pod, request)
        return request

    def place(self, request: PodRequest) -> Allocation | NoRoom:
        """Cards, which the pod holds from now on, or why there are none. Raises what plugins raise."""
        decision = self._decider.decide(request)
        if decision is None:
            return self._no_room(request)
        allocation = decision.allocation
        self.hold(allocation)
        return allocation

    def why_not(self, request: PodRequest) -> NoRoom | None:
        """Why it does not fit now; None where it does. Nothing is taken."""
        return None if self._decider.decide(request) is not None else self._no_room(request)

    def hold(self, allocation: Allocation) -> None:
        """A pod that was placed before holds this."""
        self.release(allocation.pod)
        self._decider.take(allocation, Room())
        self._held[allocation.pod] = allocation

    def release(self, uid: PodUid) -> None:
        self._held.pop(uid, None)
        self._decider.give_back(uid)

    def take_in(self, inventory: Inventory) -> None:
        """What is held stays held."""
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
        for allocation in self._held.values():
            for usage in usages(allocation):
                milli[usage.card] = milli.get(usage.card, 0) + usage.share_milli
                memory.setdefault(usage.card, []).append(usage.memory)
        return tuple(CardRoom(card, milli[card.id], together(memory.get(card.id, ()))) for card in part.cards)

    def _require_answered(self, pod: Pod, request: PodRequest) -> None:
        """A resource that only a cluster's device plugin would give must not be left out in silence."""
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
