"""Cards that are handed out in fixed parts: their configuration, sizes and device names. Pure.

A claim on a part states no amounts, so it can come from an extended resource, and manifests need no change. All parts
of a card draw on the same counters: two quarters can be allocated, or a half, and never more than the card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from partage_plugins.api.claim_devices import device_name
from partage_plugins.api.gpu import MIB, Card
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import CardId

ALLOWED: Final = "a list of CARD=PARTS, CARD the id of a card or all, PARTS numbers from 2 to 16 such as 4 or 2+4"
ALL: Final = "all"
_LEAST: Final = 2
_MOST: Final = 16
_SAID: Final = re.compile(r"(?P<card>[^=\s]{1,128})=(?P<numbers>[0-9]{1,2}(\+[0-9]{1,2}){0,3})", re.ASCII)
_LONGEST_NAME: Final = 50
"""The maximum length of a card's device name, to which the part's number is appended."""


class Part(NamedTuple):
    """One of `of` equal parts of a card."""

    of: int
    place: int

    @property
    def kind(self) -> str:
        """The attribute that device classes select by."""
        return f"1of{self.of}"

    @property
    def share_milli(self) -> int:
        return WHOLE_MILLI // self.of

    def memory_bytes(self, card: Card) -> int:
        return card.memory_bytes // self.of // MIB * MIB

    def device(self, card: CardId) -> str:
        return f"{device_name(card, _LONGEST_NAME)}-{self.kind}-{self.place}"


class Cuts(NamedTuple):
    """The operator's configuration of parts; the first entry that matches a card applies."""

    entries: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def of(self, card: Card) -> tuple[Part, ...]:
        """The parts of a card; empty if it is handed out in free shares."""
        numbers = next((numbers for said, numbers in self.entries if said in {ALL, card.id}), ())
        return tuple(Part(of, place) for of in numbers for place in range(of))


def cuts_of(texts: Iterable[str]) -> Cuts:
    """The parsed configuration; raises `ValueError` with a sentence."""
    return Cuts(tuple(map(_entry, texts)))


def _entry(text: str) -> tuple[str, tuple[int, ...]]:
    match = _SAID.fullmatch(text)
    numbers = tuple(dict.fromkeys(map(int, match["numbers"].split("+")))) if match is not None else ()
    if match is None or not all(_LEAST <= number <= _MOST for number in numbers):
        raise ValueError(f"parts has {text!r:.80}; allowed: {ALLOWED}")
    return match["card"], numbers
