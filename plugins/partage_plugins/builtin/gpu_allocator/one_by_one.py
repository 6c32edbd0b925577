"""The default policy for an ask of one card, node by node: the same numbers as in arrays, sooner where nodes are few.

Most decisions ask about the few nodes that changed since the last of their kind, and on so few an array's every step
costs more than what it computes. Sums are added up in the same order on both ways, so that they agree to the last bit:
whichever way a node is looked at, it is worth the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final, NamedTuple

from partage_plugins.builtin.gpu_allocator.cluster import Cluster, Node, level_of
from partage_plugins.builtin.gpu_allocator.fragments import SCARCITY, Fragments
from partage_plugins.builtin.gpu_allocator.needs import needs_of
from partage_plugins.builtin.gpu_allocator.plan import Ask, Plan
from partage_plugins.vocabulary.answers import Slots
from partage_plugins.vocabulary.gpu import NO_TAGS
from partage_plugins.vocabulary.names import Slot

FEW: Final = 12
"""With more nodes than that arrays are sooner."""
POLICY: Final = "fgd+"
PRESSURE: Final = 0.5
FIT_MILLI: Final = 50.0
"""What an empty node loses against a full one where fragments are the same, so that nodes fill one after another."""
SCALE_MILLI: Final = 128_000.0
"""Of scores: sixty-four cards either way."""


class Best(NamedTuple):
    """What a node is worth, and the places of the cards by which it is."""

    worth: float
    places: tuple[int, ...]


class _View(NamedTuple):
    """A node without the ask."""

    moment: int
    total: int
    """Of all levels."""
    numbers: list[int]
    sums: list[int]
    """By typical ask: how many cards have enough for it, and the sum of their levels."""
    usable: float


class OneByOne:
    """Looks at single nodes of a cluster, in which this is typical."""

    def __init__(
        self, cluster: Cluster, fragments: Fragments, *, pressures: list[float], most_milli: int, most_cpu: int
    ) -> None:
        """`pressures` by make; `most_*` is what the largest nodes have."""
        self._cluster = cluster
        self._millis, self._cpus = fragments.millis.tolist(), fragments.cpus.tolist()
        self._counts, self._table = fragments.counts.tolist(), fragments.table
        self._served = fragments.served
        self._pressures = [PRESSURE * pressure for pressure in pressures]
        self._most_milli, self._most_cpu = most_milli, most_cpu
        self._views: dict[Slot, _View] = {}
        self._rows: dict[int, list[tuple[int, int, int, float]]] = {}

    def best(self, ask: Ask, cpu_milli: int, slot: Slot, possible: list[int]) -> Best:
        """By the cards that are possible, of which there is one at least."""
        node, view = self._cluster.nodes[slot], self._view(slot)
        make = node.makes[0]
        cpu = self._cluster.cpu_left.item(slot) - cpu_milli
        limit, row = self._by_cpu(cpu, make)
        emptiness = min(cpu / self._most_cpu, 1.0)
        known: dict[tuple[int, int], float] = {}
        worths: list[float] = []
        for place in possible:
            had = node.level[place]
            has = _level_with(ask, node, place)
            worth = known.get((had, has))
            if worth is None:
                taken = had - has
                gain = _usable_with(view, row, limit, had, has) - view.usable + taken
                empty = FIT_MILLI * ((view.total - taken) / self._most_milli + emptiness) / 2
                gain = gain - self._pressures[make] * taken - empty
                worth = known[had, has] = min(max(0.5 + gain / SCALE_MILLI, 0.0), 1.0)
            worths.append(worth)
        highest = max(worths)
        return Best(highest, tuple([place for place, worth in zip(possible, worths, strict=True) if worth == highest]))

    def _view(self, slot: Slot) -> _View:
        moment, view = self._cluster.changed.item(slot), self._views.get(slot)
        if view is None or view.moment != moment:
            view = self._views[slot] = self._looked_at(slot, moment)
        return view

    def _looked_at(self, slot: Slot, moment: int) -> _View:
        node = self._cluster.nodes[slot]
        ordered = sorted(node.level)
        above = [*accumulate(reversed(ordered), initial=0)]
        first = [bisect_left(ordered, milli) for milli in self._millis]
        numbers = [len(ordered) - place for place in first]
        sums = [above[number] for number in numbers]
        limit, row = self._by_cpu(self._cluster.cpu_left.item(slot), node.makes[0])
        usable = 0.0
        for place, _, count, fraction in row:
            if numbers[place] >= count:
                usable += _served(sums[place], limit) * fraction
        return _View(moment, sum(ordered), numbers, sums, usable)

    def _by_cpu(self, cpu: int, make: int) -> tuple[float, list[tuple[int, int, int, float]]]:
        """Milli for which that CPU is enough; and of typical asks that fit beside it what is counted."""
        place = make * (len(self._cpus) + 1) + bisect_right(self._cpus, cpu)
        row = self._rows.get(place)
        if row is None:
            asks = zip(self._millis, self._counts, self._table[place].tolist(), strict=True)
            row = self._rows[place] = [
                (number, milli, count, part) for number, (milli, count, part) in enumerate(asks) if part
            ]
        return cpu * self._served, row


def serves(plan: Plan, cluster: Cluster) -> bool:
    """Whether such a pod's nodes may be looked at one by one: it wants any one card, by the default policy."""
    ask = plan.asks[0]
    wanted = ask.request
    is_plain = not (wanted.cards or wanted.cards_not or cluster.tags.any)
    return is_plain and wanted.tags == NO_TAGS and ask.mix.alone == POLICY


def possible_on(cluster: Cluster, ask: Ask, slots: Slots) -> list[list[int]]:
    """The places of the cards of each node that the ask may have."""
    needs, milli = needs_of(cluster, ask.request).tolist(), ask.request.share_milli
    found: list[list[int]] = []
    for slot in slots.tolist():
        node = cluster.nodes[slot]
        cards = zip(node.share_left, node.memory_left, node.makes, strict=True)
        found.append(
            [
                place
                for place, (share, memory, make) in enumerate(cards)
                if share >= milli and memory >= needs[make]
            ]
        )
    return found


def _level_with(ask: Ask, node: Node, place: int) -> int:
    wanted = ask.request
    if wanted.memory_bytes is None:
        return node.level[place] - wanted.share_milli
    total = node.cards[place].memory_bytes
    share = node.share_left[place] - wanted.share_milli
    return level_of(share, node.memory_left[place] - wanted.memory_bytes, total)


def _usable_with(view: _View, row: list[tuple[int, int, int, float]], limit: float, had: int, has: int) -> float:
    """What is usable of a node of which one card goes from one level to a lower one."""
    usable, numbers, sums = 0.0, view.numbers, view.sums
    for place, milli, count, fraction in row:
        number, milli_left = numbers[place], sums[place]
        if has >= milli:
            milli_left += has - had
        elif had >= milli:
            number -= 1
            milli_left -= had
        if number >= count:
            usable += _served(milli_left, limit) * fraction
    return usable


def _served(milli: float, limit: float) -> float:
    """Of what is usable by its cards alone, what is by its CPU too."""
    return milli - SCARCITY * (milli - limit) if milli > limit else milli
