"""Inventories for tests."""

from __future__ import annotations

from typing import Any

from partage_plugins.api import Card, CardId
from partage_plugins.api.inventory import Inventory, Ready
from support import gpu_fleet
from support.objects import of_cards

A = CardId("GPU-aaaaaaaa-0000-0000-0000-000000000000")
B = CardId("GPU-bbbbbbbb-0000-0000-0000-000000000000")


def card(id_: CardId = A, **fields: Any) -> Card:
    return gpu_fleet.card(id_, model="NVIDIA L4", **fields)


def inventory(*cards: Card, crishim: bool = True, broker: bool = True) -> Inventory:
    return of_cards(cards, ready=Ready(crishim=crishim, broker=broker))
