"""A node's inventory: its devices of every kind, and what the node can read and enforce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from partage_plugins.api.kinds import AnyKind, GrantT, KindType, PartT, RequestT
from partage_plugins.api.limits import Small
from partage_plugins.api.names import Kind, ShortText


class Ready(Struct, frozen=True):
    """Which daemons of the node are in force; a daemon that the writer does not name is not."""

    crishim: bool = False
    broker: bool = False
    why: Annotated[str, Meta(max_length=4096)] = ""
    """Why a daemon is not in force, for people; unchanged as long as the cause is the same."""


class Reads(Struct, frozen=True):
    """What the node's daemons can read."""

    allocation: Annotated[tuple[Small, ...], Meta(max_length=64)] = (1,)
    """Versions of the allocation format."""
    crit: Annotated[tuple[ShortText, ...], Meta(max_length=64)] = ()
    """Fields, beside those of version 1, that an allocation may list in its `crit`."""


class Inventory(Struct, frozen=True, kw_only=True):
    """A node's devices by kind. A part is its owner's type, or raw JSON if the reader has no owner of the kind."""

    v: Literal[1] = 1
    reads: Reads = Reads()
    ready: Ready = Ready()
    kinds: Mapping[Kind, object]

    def part(self, kind: KindType[RequestT, GrantT, PartT]) -> PartT | None:
        """This kind's part, or None if the node has none."""
        return typed_part(self.kinds, kind)


def typed_part(kinds: Mapping[Kind, object], kind: KindType[RequestT, GrantT, PartT]) -> PartT | None:
    """The part of `kind`, if it was decoded with its type."""
    part = kinds.get(kind.name)
    if part is None or isinstance(part, kind.part):
        return part
    raise not_decoded("inventory", kind)


def not_decoded(what: str, kind: AnyKind) -> TypeError:
    """The exception for a caller's mistake: the data was decoded without this kind."""
    return TypeError(f"this {what} was decoded without kind {kind.name!r}; pass it to the decoder")
