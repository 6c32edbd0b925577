"""Searches cards for several asks on one node, trying all combinations if need be.

Used only if choosing for one ask after another has failed and each ask alone would fit. Equal cards are tried once, and
so are equal nodes. To bound the scheduler's time, the search gives up after a number of steps on one node and in all:
the result is then negative, though some choice might fit. Pods with many containers on nodes with many different cards
can reach these limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from partage_gpu.allocator.bundles import resolved
from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.plan import Ask, Plan
from partage_gpu.allocator.trial import Trial, is_kept_off
from partage_plugins.answers import Flags
from partage_plugins.api.card_memory import Amount, CardMemory, Promised, of_pod, together
from partage_plugins.api.gpu import LEVELS
from partage_plugins.api.names import Slot
from partage_plugins.api.usage import peak
from partage_plugins.rules.topology import gathered

_MOST_STEPS: Final = 1_000
_MOST_IN_ALL: Final = 10_000


class _Spot(NamedTuple):
    """One card: what is left of it without the pod, and the pod's asks on it."""

    share: int
    memory: int
    total: int
    pledged: tuple[CardMemory, Promised] | None
    """For an oversubscribed card; `memory` is what is left of other cards."""
    open_to: tuple[bool, ...]
    """For each ask, whether it may have the card when it is alone."""
    groups: tuple[int, ...] = ()
    """The card's group on each of `LEVELS`; empty if no ask wants close cards."""
    held: tuple[int, ...] = ()
    """Asks on it, by number."""


class Search:
    """One search over many nodes."""

    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self._cluster, self._asks = cluster, plan.asks
        self._until = 0
        self._left = _MOST_IN_ALL
        self._known: dict[tuple[_Spot, ...], tuple[Flags, ...] | None] = {}

    def cards(self, slot: Slot) -> tuple[Flags, ...] | None:
        """Cards of the node for each ask, as one row each; None if no choice was found."""
        spots = self._spots(slot)
        if spots not in self._known:
            self._until = max(self._left - _MOST_STEPS, 0)
            found = self._found(0, list(spots))
            width = self._cluster.level.shape[1]
            rows = tuple(_row(found, number, width) for number in range(len(self._asks))) if found else None
            self._known[spots] = rows
        return self._known[spots]

    def _spots(self, slot: Slot) -> tuple[_Spot, ...]:
        node = self._cluster.nodes[slot]
        open_to = [_open_to(self._cluster, ask, slot) for ask in self._asks]
        levels = node.levels.by_name if any(ask.request.bundles for ask in self._asks) else {}
        return tuple(
            _Spot(
                share=node.share_left[place],
                memory=node.memory_left[place],
                total=card.memory_bytes,
                pledged=(node.pledges[place].capacity, node.pledges[place].now) if place in node.pledges else None,
                open_to=tuple(row[place] for row in open_to),
                groups=tuple(groups[place] for groups in levels.values()),
            )
            for place, card in enumerate(node.cards)
        )

    def _found(self, number: int, spots: list[_Spot]) -> list[_Spot] | None:
        """The spots with this ask and all later ones placed on them."""
        if number == len(self._asks):
            return spots
        for places in self._sets(number, spots):
            if self._left <= self._until:
                return None
            self._left -= 1
            if not self._are_close(number, places, spots):
                continue
            found = self._found(number + 1, _with(spots, places, number))
            if found is not None:
                return found
        return None

    def _are_close(self, number: int, places: Sequence[int], spots: Sequence[_Spot]) -> bool:
        """Whether a set of cards satisfies the ask's bundles."""
        wanted = self._asks[number].request
        if not wanted.bundles:
            return True
        levels = {level: [spot.groups[at] for spot in spots] for at, level in enumerate(LEVELS)}
        return gathered(levels, places, resolved(self._cluster, wanted.bundles), wanted.count) is not None

    def _sets(self, number: int, spots: list[_Spot]) -> Iterator[list[int]]:
        """Sets of cards for an ask; of equal cards, the first ones."""
        alike: dict[_Spot, list[int]] = {}
        for place, spot in enumerate(spots):
            if spot.open_to[number] and self._has_room(spot, number):
                alike.setdefault(spot, []).append(place)
        yield from _picks(list(alike.values()), self._asks[number].request.count)

    def _has_room(self, spot: _Spot, number: int) -> bool:
        ask, others = self._asks[number], [self._asks[held] for held in spot.held]
        if any(is_kept_off(ask, other) for other in others):
            return False
        asks = [*others, ask]
        walls = {ask.request.tags.exclusion for ask in asks}
        share = peak((ask.role, ask.request.share_milli) for ask in asks)
        spare = ask.request.least_share_milli - ask.request.share_milli
        return len(walls) == 1 and share + spare <= spot.share and _has_memory(spot, asks)


def _has_memory(spot: _Spot, asks: Sequence[Ask]) -> bool:
    """Whether the card has memory for all of these asks together."""
    if spot.pledged is None:
        return peak((ask.role, ask.request.memory_on(spot.total)) for ask in asks) <= spot.memory
    capacity, promised = spot.pledged
    amounts = [Amount(ask.role, ask.request.memory_on(spot.total), ask.request.movable) for ask in asks]
    return capacity.keeps(together([promised, of_pod(amounts)]))


def _open_to(cluster: Cluster, ask: Ask, slot: Slot) -> list[bool]:
    return list(Trial(cluster, np.array([slot], np.int32), 0).possible(ask)[0].tolist())


def _with(spots: list[_Spot], places: Sequence[int], number: int) -> list[_Spot]:
    changed = list(spots)
    for place in places:
        changed[place] = spots[place]._replace(held=(*spots[place].held, number))
    return changed


def _picks(groups: Sequence[Sequence[int]], count: int) -> Iterator[list[int]]:
    """All ways to take `count` members from groups whose members are equal."""
    if not count:
        yield []
    elif groups:
        first, *others = groups
        for number in range(min(count, len(first)), -1, -1):
            for rest in _picks(others, count - number):
                yield [*first[:number], *rest]


def _row(spots: Sequence[_Spot], number: int, width: int) -> Flags:
    row = np.zeros((1, width), np.bool_)
    for place, spot in enumerate(spots):
        row[0, place] = number in spot.held
    return row
