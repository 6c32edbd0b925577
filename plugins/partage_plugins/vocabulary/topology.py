"""How devices of one node lie to each other, for any kind: levels of closeness, and what a request wants of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from partage_plugins.vocabulary.limits import MAX_CARDS
from partage_plugins.vocabulary.names import ShortText

Levels = Mapping[str, Sequence[int]]
"""For each level by its name: the number of the group that each device is in, by the device's place on its node. A
device that is close to no other has a group of its own."""
MAX_BUNDLES: Final = 64


class Bundle(Struct, frozen=True):
    """So many devices that must lie in one group of a level; two bundles may lie in the same."""

    level: ShortText
    count: Annotated[int, Meta(ge=1, le=MAX_CARDS)]
    parts: Annotated[tuple[Bundle, ...], Meta(max_length=MAX_BUNDLES)] = ()
    """Of these devices those that must lie closer yet: bundles of another level inside the same group."""

    def __post_init__(self) -> None:
        inside = sum([part.count for part in self.parts]) if self.parts else 0
        if inside > self.count:
            raise ValueError(f"a bundle of {self.count} devices has parts of {inside}")
