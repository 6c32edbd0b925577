"""How placing an ask changes the fragmentation of a node: fragmentation gradient descent (FGD, Weng et al., ATC 2023).

The fragment of a node is the part of its idle cards that a typical pod could not use. For a shape of pods that fits on
the node, that is the rest of each card that has less than the shape needs of one; for a shape that does not fit,
everything idle. The fragments of a node are the mean over typical shapes, so

    fragments = idle - sum over shapes that fit of fraction * usable
    usable    = sum of the levels of cards that have at least the shape's milli

That is `fgd`. It considers whether a node's CPU suffices for one pod of a shape, never for how many. `fgd+`
(`scarce=True`) also counts, with a small weight, what would stay idle for lack of CPU if pods of the shape filled the
node: they can use no more milli of cards than its CPU serves, at the rate that typical pods need. Where CPU is
plentiful the two are the same. The weight is small because arriving pods are not all of one shape: with full weight,
nodes of many cards would be fragmented early for the sake of their CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from partage_gpu.allocator.cluster import Make
from partage_gpu.allocator.shapes import Shape, Typical
from partage_gpu.allocator.trial import Offer
from partage_plugins.answers import Flags, Ints, Reals, Slots
from partage_plugins.api.gpu import is_named

_ROWS: Final = 512
"""Nodes per batch: more would not fit into the CPU cache."""
_FEW_CARDS: Final = 16
_NO_LIMIT: Final = 1e9
SCARCITY: Final = 0.05
"""Weight of what stays idle for lack of CPU."""


class Fragments:
    """Fragmentation by typical shapes.

    Shapes that need the same of cards are counted together: which of them fit depends only on CPU and model, so `table`
    has, for each make and amount of CPU, the fraction of pods for each need that fit. The values of nodes before an ask
    is placed are cached until they change, since many pods consider the same few nodes.
    """

    def __init__(self, typical: Typical, *, scarce: bool) -> None:
        self._asking = [(shape, part) for shape, part, _ in typical if part and shape.count and shape.milli]
        self._asks = sorted({(shape.milli, shape.count) for shape, _ in self._asking})
        self.millis: Ints = np.array([milli for milli, _ in self._asks], np.int64)
        self.counts: Ints = np.array([count for _, count in self._asks], np.int64)
        self.cpus: Ints = np.array(sorted({shape.cpu_milli for shape, _ in self._asking}), np.int64)
        self.served = _milli_served(self._asking) if scarce else _NO_LIMIT
        self._is_scarce = scarce
        self._makes = 0
        self.table: Reals = np.zeros((0, len(self._asks)))
        """By make and amount of CPU, flattened into rows."""
        self._kept = _Kept(len(self._asks))

    def gains(self, offer: Offer) -> Reals:
        """For each possible card, by how many milli the ask on it reduces the fragments."""
        if len(offer.level) <= _ROWS:
            return self._gains(offer, slice(None))
        found = np.zeros(offer.level.shape)
        for start in range(0, len(found), _ROWS):
            rows = slice(start, start + _ROWS)
            found[rows] = self._gains(offer, rows)
        return found

    def gains_of_sets(self, offer: Offer, chosen: Flags) -> Reals:
        """The same for a set of cards on each node; if it is empty, only the node's CPU decreases."""
        after = np.where(chosen, offer.after, offer.level)
        makes = offer.cluster.main_make.take(offer.slots)
        now = self._before(offer, slice(None), makes).usable
        numbers, sums = self._large(after)
        then = self._usable(numbers, sums, *self._by_cpu(offer.trial.cpu_after, makes))
        gains: Reals = then - now + (offer.level - after).sum(axis=1)
        return gains

    def _gains(self, offer: Offer, rows: slice) -> Reals:
        level, after = offer.level[rows], offer.after[rows]
        possible, first = _first_of_equals(offer.possible[rows], level, after)
        cards = possible.ravel().nonzero()[0]
        node = cards // level.shape[1]
        had, has = level.ravel().take(cards), after.ravel().take(cards)
        makes = offer.cluster.main_make.take(offer.slots[rows])
        now = self._before(offer, rows, makes)
        large_had, large_has = had[:, None] >= self.millis, has[:, None] >= self.millis
        numbers = now.numbers.take(node, 0) - large_had + large_has
        sums = now.sums.take(node, 0) - large_had * had[:, None] + large_has * has[:, None]
        limits, places = self._by_cpu(offer.trial.cpu_after[rows], makes)
        then = self._usable(numbers, sums, limits.take(node), places.take(node))
        gains = np.zeros(level.shape)
        gains.ravel()[cards] = then - now.usable.take(node) + (had - has)
        return gains if first is None else np.take_along_axis(gains, first, axis=1)

    def _before(self, offer: Offer, rows: slice, makes: Ints) -> _Nodes:
        trial = offer.trial
        if not trial.is_untouched:
            return self._looked_at(offer.level[rows], trial.cpu_before[rows], makes)
        cluster, slots = offer.cluster, offer.slots[rows]
        stale = self._kept.stale(slots, cluster.changed)
        if len(stale):
            at = slots.take(stale)
            found = self._looked_at(cluster.level.take(at, 0), cluster.cpu_left.take(at), makes.take(stale))
            self._kept.put(at, found, cluster.changed)
        return self._kept.of(slots)

    def _looked_at(self, level: Ints, cpu: Ints, makes: Ints) -> _Nodes:
        numbers, sums = self._large(level)
        return _Nodes(numbers, sums, self._usable(numbers, sums, *self._by_cpu(cpu, makes)))

    def _large(self, level: Ints) -> tuple[Ints, Ints]:
        """By node and need: the number of cards that suffice for it, and the sum of their levels."""
        large = level[:, :, None] >= self.millis
        return large.sum(axis=1), (large * level[:, :, None]).sum(axis=1)

    def _by_cpu(self, cpu: Ints, makes: Ints) -> tuple[Reals, Ints]:
        """By node: the milli of cards that its CPU serves, and its row of the table."""
        limits = np.multiply(cpu, self.served, dtype=np.float64)
        return limits, makes * (len(self.cpus) + 1) + self.cpus.searchsorted(cpu, side="right")

    def _usable(self, numbers: Ints, sums: Ints, limits: Reals, places: Ints) -> Reals:
        """The usable milli, averaged over pods."""
        usable: Reals | Ints = sums * (numbers >= self.counts)
        if self._is_scarce:
            usable = usable - SCARCITY * np.maximum(usable - limits[:, None], 0.0)
        counted: Reals = usable * self.table.take(places, 0)
        mean: Reals = np.add.accumulate(counted, axis=1)[:, -1]  # sequential, as in `one_by_one`
        return mean

    def knows(self, makes: Sequence[Make]) -> None:
        """Adds new makes; they are never removed."""
        if self._makes < len(makes):
            self._makes = len(makes)
            self.table = np.concatenate([self._of_make(make) for make in makes])
            self._kept = _Kept(len(self._asks))

    def _of_make(self, make: Make) -> Reals:
        table = np.zeros((len(self.cpus) + 1, len(self._asks)))
        for shape, fraction in self._asking:
            if not shape.models or is_named(make.model, shape.models):
                enough = int(np.searchsorted(self.cpus, shape.cpu_milli)) + 1
                table[enough:, self._asks.index((shape.milli, shape.count))] += fraction
        return table


class _Nodes(NamedTuple):
    """The computed values of some nodes."""

    numbers: Ints
    sums: Ints
    usable: Reals


class _Kept:
    """The values of all nodes at their last evaluation, by slot."""

    def __init__(self, asks: int) -> None:
        self._asks = asks
        self._moments: Ints = np.zeros(0, np.int64)
        self._nodes = self._room_for(0)

    def stale(self, slots: Slots, changed: Ints) -> Ints:
        """The indices of slots that have changed since then."""
        if len(self._moments) < len(changed):
            self._moments, self._nodes = np.full(len(changed), -1, np.int64), self._room_for(len(changed))
        places: Ints = (self._moments.take(slots) != changed.take(slots)).nonzero()[0]
        return places

    def put(self, slots: Slots, nodes: _Nodes, changed: Ints) -> None:
        for kept, array in zip(self._nodes, nodes, strict=True):
            kept[slots] = array
        self._moments[slots] = changed.take(slots)

    def of(self, slots: Slots) -> _Nodes:
        numbers, sums, usable = self._nodes
        return _Nodes(numbers.take(slots, 0), sums.take(slots, 0), usable.take(slots))

    def _room_for(self, nodes: int) -> _Nodes:
        shape = nodes, self._asks
        return _Nodes(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(nodes))


def _milli_served(asking: Sequence[tuple[Shape, float]]) -> float:
    """Milli of cards that one milli of CPU serves, averaged over pods."""
    cpu = sum(shape.cpu_milli * fraction for shape, fraction in asking)
    milli = sum(shape.milli * shape.count * fraction for shape, fraction in asking)
    return milli / cpu if cpu else _NO_LIMIT


def _first_of_equals(possible: Flags, level: Ints, after: Ints) -> tuple[Flags, Ints | None]:
    """Restricts the computation to the first of a node's equal cards; for each card, the index of that one."""
    if level.shape[1] > _FEW_CARDS or len(level) < _FEW_CARDS:
        return possible, None
    equal = (level[:, :, None] == level[:, None, :]) & (after[:, :, None] == after[:, None, :])
    first: Ints = (equal & possible[:, None, :]).argmax(axis=2)
    return possible & (first == np.arange(level.shape[1])), first
