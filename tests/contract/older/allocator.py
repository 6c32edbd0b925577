"""An allocator of cards as somebody wrote it before the kit was a pytest plugin: it stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from partage_plugins import Refused, hookimpl
from partage_plugins.api import (
    GPU,
    Allocation,
    Card,
    CardId,
    ContainerName,
    GpuGrant,
    GpuRequest,
    Inventory,
    PodRequest,
    Slot,
)
from partage_plugins.per_node import PerNode

_NO_ROOM = "not enough share and memory on any card"
Grants = dict[ContainerName, list[GpuGrant]]


class Room(Struct):
    """What is free on one card."""

    card: Card
    share_milli: int
    memory_bytes: int

    def take(self, grant: GpuGrant) -> None:
        self.share_milli -= grant.share_milli
        self.memory_bytes -= grant.memory_bytes

    def give_back(self, grant: GpuGrant) -> None:
        self.share_milli += grant.share_milli
        self.memory_bytes += grant.memory_bytes


class GpuScheduler(PerNode):
    """First card that has room, first."""

    def __init__(self) -> None:
        self._rooms: dict[Slot, dict[CardId, Room]] = {}

    @hookimpl
    def partage_kind(self) -> object:
        return GPU

    @hookimpl
    def partage_shape(self, request: PodRequest) -> object:
        return tuple(request.of(GPU).values())

    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        part = inventory.part(GPU)
        cards = [card for card in part.cards if card.is_allocatable] if part else []
        self._rooms[slot] = {card.id: Room(card, 1000, card.memory_bytes) for card in cards}

    @hookimpl
    def partage_node_room(self, slot: Slot) -> None:
        """Prefers by nothing but cards."""

    @hookimpl
    def partage_node_removed(self, slot: Slot) -> None:
        del self._rooms[slot]

    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        return _NO_ROOM if self._chosen(request, slot) is None else None

    def score(self, request: PodRequest, slot: Slot) -> float:
        return 1 - sum(room.share_milli for room in self._rooms[slot].values()) / 1_000_000

    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[GpuGrant]]:
        chosen = self._chosen(request, slot)
        if chosen is None:
            raise Refused(_NO_ROOM)
        return chosen

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        for grant in _granted(allocation):
            self._rooms[slot][CardId(grant.card)].take(grant)

    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Allocation) -> None:
        for grant in _granted(allocation):
            self._rooms[slot][CardId(grant.card)].give_back(grant)

    def _chosen(self, request: PodRequest, slot: Slot) -> Grants | None:
        rooms = [Room(room.card, room.share_milli, room.memory_bytes) for room in self._rooms[slot].values()]
        chosen: Grants = {}
        for name, ask in request.of(GPU).items():
            fitting = [room for room in rooms if _has_room(room, ask)][: ask.count]
            if len(fitting) < ask.count:
                return None
            chosen[name] = [_grant(room.card, ask) for room in fitting]
            for room, grant in zip(fitting, chosen[name], strict=True):
                room.take(grant)
        return chosen


def _has_room(room: Room, ask: GpuRequest) -> bool:
    return room.share_milli >= ask.share_milli and room.memory_bytes >= ask.memory_on(room.card.memory_bytes)


def _grant(card: Card, ask: GpuRequest) -> GpuGrant:
    memory = ask.memory_on(card.memory_bytes)
    return GpuGrant(card=card.id, share_milli=ask.share_milli, limit_milli=ask.limit_milli, memory_bytes=memory)


def _granted(allocation: Allocation) -> Iterator[GpuGrant]:
    for grants in allocation.of(GPU).values():
        yield from grants
