"""Which cards carry which tags, and which cards a request's tags leave it.

The rules act on cards in use; an idle card is always a choice. Affinity: of the cards in use only those that carry the
same tag. Anti-affinity: none that carries the same tag. Exclusion: only cards whose grants all have the same tag, where
having none is a value of its own both ways.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from partage_plugins.vocabulary.gpu import Tags
from partage_plugins.vocabulary.names import Slot

Sort = Literal["affinity", "anti-affinity", "exclusion"]
Place = tuple[Slot, int]


class TagBook:
    """How many grants on each card carry each tag."""

    def __init__(self) -> None:
        self.carried: dict[tuple[Sort, str], Counter[Place]] = {}
        """By tag: how many grants on which cards."""
        self._of_slot: dict[Slot, Counter[tuple[Sort, str]]] = {}

    @property
    def any(self) -> bool:
        """Whether any card carries a tag."""
        return bool(self.carried)

    def count(self, slot: Slot, place: int, tags: Tags, sign: int) -> None:
        """One grant more (`sign` 1) or less (-1)."""
        for tag in sorts(tags):
            carried = self.carried.setdefault(tag, Counter())
            carried[slot, place] += sign
            if not carried[slot, place]:
                del carried[slot, place]
            if not carried:
                del self.carried[tag]
            of_slot = self._of_slot.setdefault(slot, Counter())
            of_slot[tag] += sign
            if not of_slot[tag]:
                del of_slot[tag]

    def forget(self, slot: Slot) -> None:
        for tag in self._of_slot.pop(slot, ()):
            left = Counter({at: number for at, number in self.carried[tag].items() if at[0] != slot})
            if left:
                self.carried[tag] = left
            else:
                del self.carried[tag]

    def carrying(self, tag: tuple[Sort, str]) -> Counter[Place]:
        """The cards that carry a tag, with how many grants do."""
        return self.carried.get(tag, Counter())


def sorts(tags: Tags) -> tuple[tuple[Sort, str], ...]:
    """The tags that are set, each with its sort."""
    pairs: tuple[tuple[Sort, str | None], ...] = (
        ("affinity", tags.affinity),
        ("anti-affinity", tags.anti_affinity),
        ("exclusion", tags.exclusion),
    )
    return tuple((sort, tag) for sort, tag in pairs if tag is not None)
