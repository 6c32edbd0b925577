"""The groups of close cards of a node, on each level: `vocabulary.topology` for cards. Pure.

On a level that the driver does not report, each card is a group of its own, so that nothing unknown is promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from partage_plugins.api.gpu import NUMA, NVLINK, PCIE, Card, GpuPart
from partage_plugins.api.topology import Levels


class CardLevels(NamedTuple):
    """The group of each card, in the order of the node's cards, on each level."""

    nvlink: tuple[int, ...] = ()
    pcie: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()

    @property
    def by_name(self) -> Levels:
        return {NVLINK: self.nvlink, PCIE: self.pcie, NUMA: self.numa}


def card_levels(part: GpuPart | None) -> CardLevels:
    """The levels of all cards of a node."""
    if part is None:
        return CardLevels()
    return CardLevels(_linked(part), _switched(part.cards), _of_one_processor(part.cards))


def _linked(part: GpuPart) -> tuple[int, ...]:
    """Groups that are linked pairwise: each card joins the first group whose cards it has links to."""
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
    """MIG instances of one GPU are behind the same switch, even if it is not known."""
    return _numbered(
        {
            place: card.parent or card.id if card.pcie_switch is None else card.pcie_switch
            for place, card in enumerate(cards)
        }
    )


def _of_one_processor(cards: Sequence[Card]) -> tuple[int, ...]:
    """A machine with one NUMA node reports none; if some cards report theirs, the others' are unknown."""
    is_one = all(card.numa_node is None for card in cards)
    return _numbered(
        {
            place: 0 if is_one else card.parent or card.id if card.numa_node is None else card.numa_node
            for place, card in enumerate(cards)
        }
    )


def _numbered(groups: Mapping[int, str | int]) -> tuple[int, ...]:
    """Renumbers groups in the order of the cards, so that equal boards have equal levels."""
    numbers: dict[str | int, int] = {}
    return tuple(numbers.setdefault(groups[place], len(numbers)) for place in sorted(groups))
