"""The default policy for an ask of one card, node by node: the same scores as with arrays, but faster for few nodes.

Most decisions consider only the few nodes that changed since the last similar decision, and for so few an array
operation costs more overhead than computation. Sums are added up in the same order in both implementations, so that
they agree to the last bit: a node's score does not depend on which one is used.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final, NamedTuple

from partage_gpu.allocator.cluster import Cluster, Node, level_of
from partage_gpu.allocator.fragments import SCARCITY, Fragments
from partage_gpu.allocator.needs import needs_of
from partage_gpu.allocator.plan import Ask, Plan
from partage_plugins.answers import Slots
from partage_plugins.api.gpu import NO_TAGS, GpuRequest
from partage_plugins.api.names import Slot

Steps = tuple[tuple[int, int, int], ...]
"""Cards by index, each with its level before and after the ask."""
_NO_CARD: Final[Steps] = ((0, 0, 0),)
_MOST: Final = 1 << 14
IMPOSSIBLE: Final = -1.0
FEW: Final = 12
"""With more nodes than this, arrays are faster."""
POLICY: Final = "fgd+"
PRESSURE: Final = 0.5
FIT_MILLI: Final = 50.0
"""Penalty of an empty node against a full one with equal fragments, so that nodes are filled one after another."""
SCALE_MILLI: Final = 128_000.0
"""Scale of scores: sixty-four cards in either direction."""


class Best(NamedTuple):
    """A node's score, and the indices of the cards that give it."""

    worth: float
    places: tuple[int, ...]


_NOWHERE: Final = Best(IMPOSSIBLE, ())


class _State(NamedTuple):
    """The part of a node that affects its score; pods of few kinds bring many nodes into the same states."""

    make: int
    cpu: int
    level: tuple[int, ...]


class _View(NamedTuple):
    """A node without the ask."""

    total: int
    """The sum of all levels."""
    numbers: list[int]
    sums: list[int]
    """By typical need: the number of cards that suffice for it, and the sum of their levels."""
    usable: float


class OneByOne:
    """Scores single nodes of a cluster with given typical shapes."""

    def __init__(
        self, cluster: Cluster, fragments: Fragments, *, pressures: list[float], most_milli: int, most_cpu: int
    ) -> None:
        """`pressures` is by make; `most_*` are the values of the largest nodes."""
        self._cluster = cluster
        self._millis, self._cpus = fragments.millis.tolist(), fragments.cpus.tolist()
        self._counts, self._table = fragments.counts.tolist(), fragments.table
        self._served = fragments.served
        self._pressures = [PRESSURE * pressure for pressure in pressures]
        self._most_milli, self._most_cpu = most_milli, most_cpu
        self._views: dict[_State, _View] = {}
        self._bests: dict[tuple[_State, int, Steps], Best] = {}
        self._rows: dict[int, list[tuple[int, int, int, float]]] = {}

    def best(self, plan: Plan, slot: Slot, possible: list[int]) -> Best:
        """The score with the best possible card, negative without any; by CPU alone if no card is requested."""
        node, cpu = self._cluster.nodes[slot], self._cluster.cpu_left.item(slot)
        cpu_milli, steps = plan.cpu_milli, _NO_CARD
        if plan.asks:
            if not possible:
                return _NOWHERE
            wanted, level = plan.asks[0].request, node.level
            if wanted.memory_follows_share:
                steps = tuple([(place, level[place], level[place] - wanted.share_milli) for place in possible])
            else:
                steps = tuple([(place, level[place], _level_with(wanted, node, place)) for place in possible])
        state = _State(node.makes[0] if node.makes else 0, cpu, tuple(node.level))
        question = state, cpu_milli, steps
        best = self._bests.get(question)
        if best is None:
            if len(self._bests) >= _MOST:
                self._bests.clear()
            best = self._bests[question] = self._best(state, cpu - cpu_milli, steps)
        return best

    def _best(self, state: _State, cpu: int, steps: Steps) -> Best:
        view, pressure = self._view(state), self._pressures[state.make]
        limit, row = self._by_cpu(cpu, state.make)
        emptiness = min(cpu / self._most_cpu, 1.0)
        worths: dict[tuple[int, int], float] = {}
        for _, had, has in steps:
            if (had, has) not in worths:
                taken = had - has
                gain = _usable_with(view, row, limit, had, has) - view.usable + taken
                empty = FIT_MILLI * ((view.total - taken) / self._most_milli + emptiness) / 2
                gain = gain - pressure * taken - empty
                worths[had, has] = min(max(0.5 + gain / SCALE_MILLI, 0.0), 1.0)
        highest = max(worths.values())
        return Best(highest, tuple([place for place, had, has in steps if worths[had, has] == highest]))

    def _view(self, state: _State) -> _View:
        view = self._views.get(state)
        if view is None:
            if len(self._views) >= _MOST:
                self._views.clear()
            view = self._views[state] = self._looked_at(state)
        return view

    def _looked_at(self, state: _State) -> _View:
        ordered = sorted(state.level)
        above = [*accumulate(reversed(ordered), initial=0)]
        first = [bisect_left(ordered, milli) for milli in self._millis]
        numbers = [len(ordered) - place for place in first]
        sums = [above[number] for number in numbers]
        limit, row = self._by_cpu(state.cpu, state.make)
        view = _View(sum(ordered), numbers, sums, 0.0)
        return view._replace(usable=_usable_with(view, row, limit, 0, 0))

    def _by_cpu(self, cpu: int, make: int) -> tuple[float, list[tuple[int, int, int, float]]]:
        """The milli that this CPU serves, and the table's entries for typical needs that fit with it."""
        place = make * (len(self._cpus) + 1) + bisect_right(self._cpus, cpu)
        row = self._rows.get(place)
        if row is None:
            asks = zip(self._millis, self._counts, self._table[place].tolist(), strict=True)
            row = self._rows[place] = [
                (number, milli, count, part) for number, (milli, count, part) in enumerate(asks) if part
            ]
        return cpu * self._served, row


def serves(plan: Plan, cluster: Cluster) -> bool:
    """Whether nodes may be scored one by one for such a pod: it wants any one card or none, by the default policy."""
    if not plan.asks:
        return plan.mix.alone == POLICY
    ask = plan.asks[0]
    wanted = ask.request
    if len(plan.asks) > 1 or wanted.count > 1 or wanted.cards or wanted.cards_not or cluster.tags.any:
        return False
    if wanted.movable and cluster.beyond:
        return False
    return wanted.tags == NO_TAGS and ask.mix.alone == POLICY


def possible_on(cluster: Cluster, ask: Ask, slots: Slots) -> list[list[int]]:
    """The indices of the cards of each node that the ask may have."""
    needs, milli = needs_of(cluster, ask.request).tolist(), ask.request.least_share_milli
    found: list[list[int]] = []
    for slot in slots.tolist():
        node = cluster.nodes[slot]
        cards = zip(node.share_left, node.memory_left, node.makes, strict=True)
        found.append(
            [place for place, (share, memory, make) in enumerate(cards) if share >= milli and memory >= needs[make]]
        )
    if ask.request.idle_cards:
        holders = [cluster.nodes[slot].holders for slot in slots.tolist()]
        return [[place for place in places if not held[place]] for places, held in zip(found, holders, strict=True)]
    return found


def _level_with(wanted: GpuRequest, node: Node, place: int) -> int:
    total, memory = node.cards[place].memory_bytes, wanted.memory_bytes
    if memory is None:
        memory = wanted.memory_on(total)
    return level_of(node.share_left[place] - wanted.share_milli, node.memory_left[place] - memory, total)


def _usable_with(view: _View, row: list[tuple[int, int, int, float]], limit: float, had: int, has: int) -> float:
    """The usable milli of a node when one of its cards goes from one level to a lower one."""
    usable, numbers, sums, taken = 0.0, view.numbers, view.sums, had - has
    for place, milli, count, fraction in row:
        number, left = numbers[place], sums[place]
        if has >= milli:
            left -= taken
        elif had >= milli:
            number -= 1
            left -= had
        if number >= count:
            usable += (left - SCARCITY * (left - limit) if left > limit else left) * fraction
    return usable
