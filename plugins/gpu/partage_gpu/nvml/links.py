"""Counts the NVLinks between cards from where each link ends. Pure.

A link that ends at a switch reaches every card whose links end at a switch, too: NVML does not say which switch, and in
every machine built so far all of them are one fabric. Two cards are then as near as the one of them with fewer links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class LinkedCard(NamedTuple):
    """A card and the addresses at which its links end; None for a switch."""

    pci: str
    ends: Sequence[str | None]


def links_between(cards: Mapping[str, LinkedCard]) -> dict[str, dict[str, int]]:
    """For each card, by uuid, how many links lead to each other one."""
    uuids = {card.pci: uuid for uuid, card in cards.items()}
    found: dict[str, dict[str, int]] = {}
    for uuid, card in cards.items():
        direct = Counter(uuids[end] for end in card.ends if end in uuids)
        switched = {other: _through_switch(card, cards[other]) for other in cards}
        counts = {other: direct[other] + switched[other] for other in cards if other != uuid}
        found[uuid] = {other: count for other, count in counts.items() if count}
    return found


def _through_switch(one: LinkedCard, other: LinkedCard) -> int:
    return min(one.ends.count(None), other.ends.count(None))
