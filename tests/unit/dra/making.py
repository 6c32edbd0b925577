"""Cards and claims for tests of the DRA driver."""

from __future__ import annotations

from typing import Any

from partage_dra.claims import Claim
from partage_plugins.api import Card, CardId, GpuPart, Namespace
from partage_plugins.api.claims import ClaimRef, ClaimUid
from rig.client.resources import Json
from support import gpu_fleet
from support.objects import read

A = CardId("GPU-AAAAAAAA-0000-0000-0000-000000000000")
B = CardId("MIG-GPU-bbbbbbbb-0000-0000-0000-000000000000/7/0")
GIB = 1 << 30
ASKED = ClaimRef(Namespace("team-a"), "share", ClaimUid("5f0c"))


def card(id_: CardId = A, **given: Any) -> Card:
    """A card of 24 GiB for claims."""
    usual: dict[str, Any] = {"pool": "dra", "model": "NVIDIA L4", "compute_capability": "8.9", "pci": "0000:01:00.0"}
    return gpu_fleet.card(id_, gib=24, **(usual | given))


def part(*cards: Card, **given: Any) -> GpuPart:
    return GpuPart(driver="580.95.05", cuda="13.0", cards=cards, **given)


def claim(*results: Json, configs: tuple[Json, ...] = (), uid: str = "5f0c") -> Claim:
    """An allocated claim as the API server sends it."""
    devices = {"results": results, "config": [{"source": "FromClaim", **each} for each in configs]}
    allocation = {"devices": devices, "nodeSelector": {}}
    return read(Claim, metadata={"uid": uid}, status={"allocation": allocation})
