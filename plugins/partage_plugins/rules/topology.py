"""Finds devices that satisfy a request's bundles. Pure, for any kind of device.

The group for each bundle is chosen by backtracking, the fullest group that suffices first; devices within groups are
assigned by bipartite matching, so devices that suit several bundles are never tried one by one. Failures are memoized:
with `n` groups in use there are at most `2**n` states for each bundle, and nodes have few groups. To bound the time,
the search gives up after `_MOST_STEPS`, even if a solution may exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from partage_plugins.api.topology import Bundle, Levels

_MOST_STEPS: Final = 2_000


def gathered(levels: Levels, free: Sequence[int], bundles: Sequence[Bundle], count: int) -> tuple[int, ...] | None:
    """`count` of the free devices that satisfy all bundles, as indices; None if there is no solution.

    `free` is in order of preference, the best first. A level that the node does not know has no groups.
    """
    if count > len(free) or sum(bundle.count for bundle in bundles) > count:
        return None
    return _Gathering(levels, free, _flat(bundles, count)).devices()


class _Demand(NamedTuple):
    """A bundle in a flat list, after the bundle that contains it."""

    level: str | None
    """None: any free device."""
    size: int
    own: int
    """The number of these devices that are in none of its parts."""
    within: int | None
    """The index of the demand that contains it."""


def _flat(bundles: Sequence[Bundle], count: int) -> list[_Demand]:
    rest = count - sum(bundle.count for bundle in bundles)
    row: list[_Demand] = []
    _append(row, bundles, None)
    return [*row, _Demand(None, rest, rest, None)]


def _append(row: list[_Demand], bundles: Sequence[Bundle], within: int | None) -> None:
    """The largest first: they are the hardest to place."""
    for bundle in sorted(bundles, key=lambda each: -each.count):
        own = bundle.count - sum(part.count for part in bundle.parts)
        row.append(_Demand(bundle.level, bundle.count, own, within))
        _append(row, bundle.parts, len(row) - 1)


class _Gathering:
    """One search on one node."""

    def __init__(self, levels: Levels, free: Sequence[int], demands: Sequence[_Demand]) -> None:
        self._levels, self._free, self._demands = levels, free, demands
        self._holder: dict[int, int] = {}
        """The demand that each device is assigned to."""
        self._failed: set[tuple[object, ...]] = set()
        self._left = _MOST_STEPS

    def devices(self) -> tuple[int, ...] | None:
        return tuple(sorted(self._holder)) if self._place(()) else None

    def _place(self, chosen: tuple[frozenset[int], ...]) -> bool:
        """Finds groups for all demands that have none yet."""
        number = len(chosen)
        if number == len(self._demands):
            return True
        key = self._key(chosen)
        if key in self._failed:
            return False
        for devices in self._groups(chosen):
            if not self._left:
                return False
            self._left -= 1
            before = dict(self._holder)
            tried = (*chosen, devices)
            if self._give(tried, number, self._demands[number].own) and self._place(tried):
                return True
            self._holder = before
        self._failed.add(key)
        return False

    def _key(self, chosen: tuple[frozenset[int], ...]) -> tuple[object, ...]:
        """The state that the remaining demands depend on."""
        held: Counter[frozenset[int]] = Counter()
        for devices, demand in zip(chosen, self._demands, strict=False):
            held[devices] += demand.own
        outer = {demand.within for demand in self._demands[len(chosen) :] if demand.within is not None}
        open_groups = tuple(chosen[place] for place in sorted(outer) if place < len(chosen))
        return len(chosen), frozenset(held.items()), open_groups

    def _groups(self, chosen: tuple[frozenset[int], ...]) -> list[frozenset[int]]:
        """The free devices of each suitable group, the fewest first, so that larger groups stay whole."""
        demand = self._demands[len(chosen)]
        within = self._free if demand.within is None else [each for each in self._free if each in chosen[demand.within]]
        if demand.level is None:
            return [frozenset(within)]
        numbers = self._levels.get(demand.level)
        if numbers is None:
            return []
        groups: dict[int, list[int]] = {}
        for place in within:
            groups.setdefault(numbers[place], []).append(place)
        return [frozenset(group) for group in sorted(groups.values(), key=len) if len(group) >= demand.size]

    def _give(self, chosen: tuple[frozenset[int], ...], number: int, own: int) -> bool:
        return all(self._give_one(chosen, number, {number}) for _ in range(own))

    def _give_one(self, chosen: tuple[frozenset[int], ...], number: int, asked: set[int]) -> bool:
        """Assigns one more device to a demand, perhaps another demand's device if that can get a different one."""
        mine = [place for place in self._free if place in chosen[number]]
        unheld = next((place for place in mine if place not in self._holder), None)
        if unheld is not None:
            self._holder[unheld] = number
            return True
        for place in mine:
            other = self._holder[place]
            if other not in asked:
                asked.add(other)
                if self._give_one(chosen, other, asked):
                    self._holder[place] = number
                    return True
        return False
