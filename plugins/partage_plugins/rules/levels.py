"""On which level which cards of a node are close: `vocabulary.topology` for cards. Pure.

A level that the driver says nothing of has a group for each card, so that nobody is promised what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from partage_plugins.vocabulary.gpu import NUMA, NVLINK, PCIE, Card, GpuPart
from partage_plugins.vocabulary.topology import Levels


class CardLevels(NamedTuple):
    """The group of each card by its place, on each level."""

    nvlink: tuple[int, ...] = ()
    pcie: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()

    @property
    def by_name(self) -> Levels:
        return {NVLINK: self.nvlink, PCIE: self.pcie, NUMA: self.numa}


def card_levels(part: GpuPart | None) -> CardLevels:
    """Of all cards of a node."""
    if part is None:
        return CardLevels()
    return CardLevels(_linked(part), _switched(part.cards), _of_one_processor(part.cards))


def _linked(part: GpuPart) -> tuple[int, ...]:
    """Groups of which every two cards have a link: each card joins the first that it is linked with all of."""
    groups: list[list[int]] = []
    for place in range(len(part.cards)):
        joined = next((group for group in groups if all(_has_link(part, place, other) for other in group)), None)
        if joined is None:
            groups.append([place])
        else:
            joined.append(place)
    return _numbered({place: number for number, group in enumerate(groups) for place in group})


def _has_link(part: GpuPart, one: int, other: int) -> bool:
    return bool(part.links) and part.links[one][other] > 0


def _switched(cards: Sequence[Card]) -> tuple[int, ...]:
    """Instances of one GPU lie behind the same switch, whether it is known or not."""
    return _numbered(
        {
            place: card.parent or card.id if card.pcie_switch is None else card.pcie_switch
            for place, card in enumerate(cards)
        }
    )


def _of_one_processor(cards: Sequence[Card]) -> tuple[int, ...]:
    """A machine with one NUMA node names none; where some cards name theirs, the others' is not known."""
    is_one = all(card.numa_node is None for card in cards)
    return _numbered(
        {
            place: 0 if is_one else card.parent or card.id if card.numa_node is None else card.numa_node
            for place, card in enumerate(cards)
        }
    )


def _numbered(groups: Mapping[int, str | int]) -> tuple[int, ...]:
    """Small numbers in the order of places, so that equal boards have equal levels."""
    numbers: dict[str | int, int] = {}
    return tuple(numbers.setdefault(groups[place], len(numbers)) for place in sorted(groups))
