"""A small node plugin for cards, for tests: it claims to enforce shares, and records its calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from partage_plugins import Refused, hookimpl
from partage_plugins.api import GPU, Adjustment, Card, CardId, ContainerKey, Device, GpuPart, Granted
from partage_plugins.api.node import Gauge, NodeContext


class GpuNode:
    """Reads its cards from one file and writes its calls to another."""

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
    """A card in the inventory's form."""
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
