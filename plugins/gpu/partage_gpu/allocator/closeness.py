"""How close cards of one node are, and which set of them is closest. Pure arithmetic on small tables.

The closeness of two cards is their number of NVLinks, relative to the node's best pair, plus a bonus for the same NUMA
node. Up to `_MOST_SETS` possible sets are all compared; beyond that, sets are grown greedily from each card.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Final

from partage_plugins.api.gpu import GpuPart

Closeness = tuple[tuple[float, ...], ...]
"""From 0 to 1, between each two cards of a node."""

_LINKS: Final = 0.8
_NUMA: Final = 0.2
_MOST_SETS: Final = 500


def closeness(part: GpuPart | None) -> Closeness:
    """How close the cards of a node are."""
    if part is None:
        return ()
    most = max((max(row, default=0) for row in part.links), default=0) or 1
    places = range(len(part.cards))
    numa = [card.numa_node for card in part.cards]
    return tuple(
        tuple(
            0.0
            if i == j
            else (_LINKS * part.links[i][j] / most if part.links else 0.0)
            + (_NUMA if numa[i] is not None and numa[i] == numa[j] else 0.0)
            for j in places
        )
        for i in places
    )


def tightest(close: Closeness, candidates: Sequence[int], count: int, fixed: Sequence[int] = ()) -> tuple[int, ...]:
    """The set of `count` of the candidates that is closest, together with the fixed cards.

    Among equally close sets, the one least close to the remaining candidates; then the first.
    """
    if count >= len(candidates):
        return tuple(candidates)
    if comb(len(candidates), count) <= _MOST_SETS:
        sets = [tuple(places) for places in combinations(candidates, count)]
    else:
        sets = [_grown(close, candidates, count, [*fixed, start], len(fixed)) for start in candidates]
    return max(sets, key=lambda places: _merit(close, places, candidates, fixed))


def _grown(
    close: Closeness, candidates: Sequence[int], count: int, begun: Sequence[int], fixed: int
) -> tuple[int, ...]:
    places = list(begun)
    while len(places) < fixed + count:
        left = [place for place in candidates if place not in places]
        places.append(max(left, key=lambda place: (sum(close[place][other] for other in places), -place)))
    return tuple(sorted(places[fixed:]))


def _merit(
    close: Closeness, places: Sequence[int], candidates: Sequence[int], fixed: Sequence[int]
) -> tuple[float, float, list[int]]:
    left = [place for place in candidates if place not in places]
    broken = sum(close[place][other] for place in places for other in left)
    return round(within(close, [*places, *fixed]), 9), -round(broken, 9), [-place for place in places]


def within(close: Closeness, places: Sequence[int]) -> float:
    """The sum over all pairs of a set."""
    return sum(close[one][other] for one, other in combinations(places, 2))
