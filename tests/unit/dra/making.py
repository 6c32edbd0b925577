"""Cards and claims for tests of the DRA driver."""

from __future__ import annotations

from typing import Any

import msgspec

from partage_dra.claims import Claim
from partage_plugins.api import Card, CardId, GpuPart, Namespace
from partage_plugins.api.claims import ClaimRef, ClaimUid

A = CardId("GPU-AAAAAAAA-0000-0000-0000-000000000000")
B = CardId("MIG-GPU-bbbbbbbb-0000-0000-0000-000000000000/7/0")
GIB = 1 << 30
ASKED = ClaimRef(Namespace("team-a"), "share", ClaimUid("5f0c"))
PARAMETERS = {"apiVersion": "partage.dev/v1", "kind": "ShareConfig"}


def card(id_: CardId = A, **given: Any) -> Card:
    defaults: dict[str, Any] = {
        "index": 0,
        "model": "NVIDIA L4",
        "memory_bytes": 24 * GIB,
        "compute_capability": "8.9",
        "pci": "0000:01:00.0",
        "pool": "dra",
    }
    return Card(id=id_, **{**defaults, **given})


def part(*cards: Card, **given: Any) -> GpuPart:
    return GpuPart(driver="580.95.05", cuda="13.0", cards=cards, **given)


def result(device: str, share: str | None = "300", memory: str | None = "8Gi", **given: Any) -> dict[str, Any]:
    consumed = {"share": share, "memory": memory}
    return {
        "request": "gpu",
        "driver": "gpu.partage.dev",
        "pool": "n1",
        "device": device,
        "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
        "consumedCapacity": {name: amount for name, amount in consumed.items() if amount is not None},
        **given,
    }


def config(requests: tuple[str, ...] = (), driver: str = "gpu.partage.dev", **said: Any) -> dict[str, Any]:
    return {"source": "FromClaim", "requests": requests, "opaque": {"driver": driver, "parameters": PARAMETERS | said}}


def claim(*results: dict[str, Any], configs: tuple[dict[str, Any], ...] = (), uid: str = "5f0c") -> Claim:
    """A claim as the API server sends it."""
    written = {
        "metadata": {"uid": uid},
        "status": {"allocation": {"devices": {"results": results, "config": configs}, "nodeSelector": {}}},
    }
    return msgspec.json.decode(msgspec.json.encode(written), type=Claim)
