"""The closest level on which nodes have the requested number of cards. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from partage_plugins.api.gpu import LEVELS
from partage_plugins.rules.levels import CardLevels


class Board(NamedTuple):
    """A node's hardware layout."""

    levels: CardLevels
    places: tuple[int, ...]
    """Of the cards that pods may be given."""


def closest_level(boards: Collection[Board], count: int) -> str:
    """The closest level on which some node has that many cards in one group; the widest level if there is none."""
    for level in LEVELS[:-1]:
        if any(_largest(board.levels.by_name[level], board.places) >= count for board in boards):
            return level
    return LEVELS[-1]


def _largest(groups: Sequence[int], places: Sequence[int]) -> int:
    sizes: dict[int, int] = {}
    for place in places:
        sizes[groups[place]] = sizes.get(groups[place], 0) + 1
    return max(sizes.values(), default=0)
