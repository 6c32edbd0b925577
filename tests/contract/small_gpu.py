"""A small owner of cards, for tests: shares and memory are counted for each card; the node side says it enforces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from partage_plugins import Refused, hookimpl
from partage_plugins.per_node import PerNode
from partage_plugins.vocabulary import (
    GPU,
    Adjustment,
    Allocation,
    Card,
    CardId,
    ContainerKey,
    ContainerName,
    Device,
    GpuGrant,
    GpuPart,
    GpuRequest,
    Granted,
    Inventory,
    PodRequest,
    Slot,
)
from partage_plugins.vocabulary.node import Gauge, NodeContext

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


class GpuNode:
    """Cards stand in a file; what is called is written to another."""

    @hookimpl
    def partage_kind(self) -> object:
        return GPU

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        self._root = Path(context.root)
        self._called("partage_started")

    @hookimpl
    def partage_stopping(self) -> None:
        self._called("partage_stopping")

    @hookimpl
    def partage_discover(self) -> GpuPart | None:
        self._called("partage_discover")
        cards = self._root / "cards.json"
        return msgspec.json.decode(cards.read_bytes(), type=GpuPart) if cards.exists() else None

    @hookimpl
    def partage_samples(self) -> Sequence[Gauge]:
        self._called("partage_samples")
        return [Gauge(name="gpu_busy_ratio", value=0.5, labels={"device_uuid": "GPU-0"})]

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        self._called("partage_adjust")
        part, grants = granted.part(GPU), granted.of(GPU)
        cards = [part.card(CardId(grant.card)) if part else None for grant in grants]
        if None in cards:
            raise Refused("a card of this container is not on this node")
        if not grants:
            return None
        paths = [f"/dev/nvidia{card.index}" for card in cards if card]
        return Adjustment(
            env={"NVIDIA_VISIBLE_DEVICES": ",".join(grant.card for grant in grants)},
            devices=tuple(Device(container_path=path, host_path=path) for path in paths),
            enforces={GPU.name: ("memory", "share", "limit")},
        )

    @hookimpl
    def partage_removed(self, key: ContainerKey) -> None:
        self._called("partage_removed")

    def _called(self, hook: str) -> None:
        with (self._root / "called").open("a") as called:
            called.write(f"{hook}\n")


def card(number: int, memory_gib: int = 80) -> dict[str, object]:
    """A card as an inventory shows it."""
    made = Card(
        id=CardId(f"GPU-6f0c-{number}"),
        index=number,
        model="NVIDIA H100 80GB HBM3",
        memory_bytes=memory_gib << 30,
        compute_capability="9.0",
        pci=f"0000:{number:02x}:00.0",
        pool="shared",
    )
    return {**msgspec.to_builtins(made)}


def part(*cards: dict[str, object]) -> dict[str, object]:
    """A node's cards."""
    return {"driver": "580.65.06", "cuda": "13.0", "cards": list(cards)}


def _has_room(room: Room, ask: GpuRequest) -> bool:
    return room.share_milli >= ask.share_milli and room.memory_bytes >= ask.memory_on(room.card.memory_bytes)


def _grant(card: Card, ask: GpuRequest) -> GpuGrant:
    memory = ask.memory_on(card.memory_bytes)
    return GpuGrant(card=card.id, share_milli=ask.share_milli, limit_milli=ask.limit_milli, memory_bytes=memory)


def _granted(allocation: Allocation) -> Iterator[GpuGrant]:
    for grants in allocation.of(GPU).values():
        yield from grants
