"""Topology of the devices of one node, for any kind: levels of closeness, and a request's constraints on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from partage_plugins.api.limits import MAX_CARDS
from partage_plugins.api.names import ShortText

Levels = Mapping[str, Sequence[int]]
"""Maps each level's name to the group number of each device, in the order of the node's devices. A device that is close
to no other has a group of its own."""
MAX_BUNDLES: Final = 64


class Bundle(Struct, frozen=True):
    """A number of devices that must be in one group of a level; two bundles may be in the same group."""

    level: ShortText
    count: Annotated[int, Meta(ge=1, le=MAX_CARDS)]
    parts: Annotated[tuple[Bundle, ...], Meta(max_length=MAX_BUNDLES)] = ()
    """Subsets of these devices that must be closer still: bundles of another level inside the same group."""

    def __post_init__(self) -> None:
        inside = sum([part.count for part in self.parts]) if self.parts else 0
        if inside > self.count:
            raise ValueError(f"a bundle of {self.count} devices has parts of {inside}")
