"""Allocations and inventories of a small node, signed as the scheduler signs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.api import NodeName
from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.api.places import RESIZES_FOLDER
from partage_plugins.codecs import sign
from unit.crishim.rules.requests import UID, Create

NODE: Final = NodeName("n1")
GIB: Final = 1 << 30
CARD, OTHER_CARD = "GPU-5a1e3c8e-0f0b-4d2a-9c11-0123456789ab", "GPU-b7d0f6a4-2c3d-4e5f-8a9b-fedcba987654"
KEY: Final = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
Document = dict[str, Any]


def grant(card: str = CARD, share: int = 500, memory: int = 8 * GIB, **more: object) -> Document:
    return {"card": card, "share": share, "limit": 1000, "memory": memory, **more}


WHOLE: Final = grant(share=1000, memory=80 * GIB)


def allocation(*grants: Document, container: str = "main", **changes: object) -> Document:
    """An allocation of a pod with one container."""
    containers = {container: {"gpu": list(grants) or [grant()]}}
    return {"v": 1, "gen": 1, "crit": [], "pod": UID, "node": NODE, "containers": containers} | changes


def signed(document: Document | str, key: Ed25519PrivateKey = KEY) -> dict[str, str]:
    """The annotations that the scheduler writes."""
    text = document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
    return {ALLOCATION: text, SIGNATURE: sign(text, key)}


def pod(uid: str, *grants: Document, gen: int = 1, **changes: Any) -> Create:
    """A create of the pod's container, with its signed allocation."""
    return Create(uid=uid, annotations=signed(allocation(*grants, pod=uid, gen=gen)), **changes)


def write_newer(root: Path, document: Document) -> None:
    """Write the file of a pod as the advertiser does, with its allocation from the API server."""
    notes, uid = signed(document), document["pod"]
    handed = {
        "pod": {"namespace": "default", "name": "trainer", "uid": uid},
        "allocation": notes[ALLOCATION],
        "signature": notes[SIGNATURE],
    }
    path = root / RESIZES_FOLDER / f"{uid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(handed))


def card(id_: str, index: int, **changes: object) -> Document:
    return {
        "id": id_,
        "index": index,
        "model": "NVIDIA H100 80GB HBM3",
        "memory": 80 * GIB,
        "cc": "9.0",
        "pci": f"0000:{0x18 + index:02x}:00.0",
        "numa": 0,
        "health": "ok",
        "pool": "shared",
    } | changes


def inventory(*cards: Document, **kinds: object) -> Document:
    gpu = {"driver": "580.65.06", "cuda": "13.0", "cards": list(cards) or [card(CARD, 0), card(OTHER_CARD, 1)]}
    return {"v": 1, "ready": {"crishim": True, "broker": True}, "kinds": {"gpu": gpu, **kinds}}
