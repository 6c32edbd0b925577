"""Example documents shared by tests, fuzzers and benchmarks of the codecs, and a made-up kind."""

from __future__ import annotations

import json
from random import Random
from typing import Annotated, Any, Final
from uuid import UUID

from msgspec import Meta, Struct

from partage_plugins.api import GPU, AnyKind, Kind, KindType
from partage_plugins.api.limits import Small
from partage_plugins.api.names import KindText, ShortText

Document = dict[str, Any]
POD: Final = "8f6b1a52-6f1e-4c3e-9b39-8a1a1f0c2d11"
GIB: Final = 1 << 30


class BoardGrant(Struct, frozen=True, kw_only=True):
    """A grant of one made-up board."""

    board: ShortText
    slot: Small = 0


class BoardPart(Struct, frozen=True, kw_only=True):
    """Nested mappings, which none of our kinds has."""

    boards: Annotated[dict[KindText, Annotated[dict[KindText, Small], Meta(max_length=4096)]], Meta(max_length=4096)]
    note: Annotated[ShortText | None, Meta(description="described types must be looked through")] = None
    spare: BoardGrant | None = None


class BoardRequest(Struct, frozen=True, kw_only=True):
    """A number of boards."""

    count: Small = 1


FPGA: Final = KindType(name=Kind("fpga"), request=BoardRequest, grant=BoardGrant, part=BoardPart)
KINDS: Final[tuple[AnyKind, ...]] = (GPU, FPGA)


def text_of(document: object) -> str:
    """The document as JSON without spaces, as another writer might write it."""
    return json.dumps(document, separators=(",", ":"))


def card_ids(count: int) -> list[str]:
    """IDs as long and as random as real ones, the same in each run."""
    random = Random(7)  # noqa: S311  an example, not a secret
    return [f"GPU-{UUID(int=random.getrandbits(128))}" for _ in range(count)]


def inventory(cards: int = 2, *, links: bool = True) -> Document:
    """A node with this many H100."""
    rows = [[0 if one == other else 18 for one in range(cards)] for other in range(cards)]
    part = {"driver": "580.65.06", "cuda": "13.0", "cards": [_card(i, id_) for i, id_ in enumerate(card_ids(cards))]}
    return {
        "v": 1,
        "reads": {"allocation": [1]},
        "ready": {"crishim": True, "broker": True},
        "kinds": {"gpu": part | ({"links": rows} if links else {})},
    }


def _card(index: int, id_: str) -> Document:
    return {
        "id": id_,
        "index": index,
        "model": "NVIDIA H100 80GB HBM3",
        "memory": 85017493504,
        "cc": "9.0",
        "pci": f"0000:{0x18 + index:02x}:00.0",
        "numa": index // 4,
        "health": "ok",
        "pool": "shared",
        "mig": None,
        "parent": None,
    }


def gpu_grant(**changes: object) -> Document:
    """A grant of half a card."""
    grant = {"card": card_ids(1)[0], "share": 500, "limit": 1000, "memory": 8 * GIB, "tags": {"exclusion": "blue"}}
    return grant | changes


def allocation(**changes: object) -> Document:
    """An allocation of half a card to one container."""
    return {
        "v": 1,
        "gen": 1,
        "crit": [],
        "pod": POD,
        "node": "n1",
        "containers": {"main": {"gpu": [gpu_grant()]}},
    } | changes


def container(**changes: object) -> Document:
    """The annotation that crishim puts on that container."""
    return {"v": 1, "key": "0123456789abcdef" * 2, "gen": 1, "grants": {"gpu": [gpu_grant()]}} | changes
