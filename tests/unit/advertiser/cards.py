"""Inventories for tests."""

from __future__ import annotations

from typing import Any

from partage_plugins.api import GPU, Card, CardId, GpuPart
from partage_plugins.api.inventory import Inventory, Ready

A = CardId("GPU-aaaaaaaa-0000-0000-0000-000000000000")
B = CardId("GPU-bbbbbbbb-0000-0000-0000-000000000000")


def card(id_: CardId = A, **given: Any) -> Card:
    defaults: dict[str, Any] = {
        "index": 0,
        "model": "NVIDIA L4",
        "memory_bytes": 24 << 30,
        "compute_capability": "8.9",
        "pci": "0000:01:00.0",
        "pool": "shared",
    }
    return Card(id=id_, **{**defaults, **given})


def inventory(*cards: Card, crishim: bool = True, broker: bool = True) -> Inventory:
    part = GpuPart(driver="580.95.05", cuda="13.0", cards=cards)
    return Inventory(ready=Ready(crishim=crishim, broker=broker), kinds={GPU.name: part})
