"""The inventory, as node annotation and as file (contract 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_plugins.api.inventory import Inventory, Reads, Ready
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.limits import MAX_KINDS
from partage_plugins.api.names import Kind, KindText
from partage_plugins.codecs.decoder import Reader, fitting
from partage_plugins.codecs.parts import read_parts

WHAT: Final = "inventory"


class _InventoryEnvelope(Struct, frozen=True):
    v: Literal[1]
    kinds: Annotated[dict[KindText, msgspec.Raw], Meta(max_length=MAX_KINDS)]
    reads: Reads = Reads()
    ready: Ready = Ready()


_ENVELOPE: Final = Reader(WHAT, _InventoryEnvelope)


def decode_inventory(raw: str | bytes, kinds: Iterable[AnyKind]) -> Inventory:
    """The inventory, with the parts of `kinds` typed and every other part as raw JSON."""
    envelope = _ENVELOPE.read(raw)
    parts: Mapping[Kind, Any] = read_parts(WHAT, envelope.kinds, {kind.name: kind.part for kind in kinds}, at="$.kinds")
    return Inventory(reads=envelope.reads, ready=envelope.ready, kinds=parts)


def encode_inventory(inventory: Inventory) -> bytes:
    """One line of JSON; equal inventories give equal bytes, so that a writer can detect changes.

    Refused if it is larger than an annotation may be.
    """
    return fitting(msgspec.json.encode(inventory, order="deterministic"), WHAT)
