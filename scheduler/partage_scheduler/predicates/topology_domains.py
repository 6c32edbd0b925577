"""Counts by topology domain: a node's zone, rack or name, as any node label defines it.

A `Tally` has the counts by node and, for each label in use, a `TopologyDomains` with the counts by that label's values.
Both are updated as pods come and go; after a change of nodes, domains are counted again on next use. The places of all
tallies share a byte limit; the least recently used are evicted first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_scheduler.predicates.nodes import NOWHERE, Nodes

EVERYWHERE: Final = None
"""The `name` that stands for all nodes instead of a subset."""
_QUESTIONS: Final = 16
_SLOT_BYTES: Final = 128
"""Memory of a node in a count by slot."""

Question = tuple[str, Hashable]


class TopologyDomains:
    """Counts by the values of one label, over all nodes or a subset."""

    __slots__ = ("_at", "_codes", "_counted", "_unlabelled", "_within", "counts", "total")

    def __init__(self, codes: NDArray[np.intp], values: int, within: Flags | None) -> None:
        self._codes = codes
        self._within = within
        self.counts = np.zeros(values + 1, dtype=np.int64)
        """By the label's codes; the last element, which nodes without the label point to, stays 0."""
        self.total = 0
        self._at: Flags | None = None
        self._counted: Flags | None = None
        self._unlabelled: tuple[Flags, bool] | None = None

    @property
    def bytes(self) -> int:
        """Memory once all arrays are built; the codes belong to the label's column."""
        return self.counts.nbytes + self.counts.size + 2 * self._codes.size

    def add(self, slot: int, number: int) -> None:
        code = int(self._codes[slot]) if slot < self._codes.size else NOWHERE
        if code == NOWHERE or not (self._within is None or self._within[slot]):
            return
        before = self.counts[code]
        self.counts[code] += number
        self.total += number
        if not before or not self.counts[code]:
            self._at = None

    def at(self) -> Flags:
        """Nodes whose domain has a count above 0; the returned array must not be modified."""
        if self._at is None:
            self._at = (self.counts > 0)[self._codes]
        return self._at

    def by_slot(self) -> NDArray[np.int64]:
        return self.counts[self._codes]

    def existing(self) -> Flags:
        """By code: the domains with at least one counted node."""
        if self._counted is None:
            self._counted = np.zeros(self.counts.size, dtype=np.bool_)
            self._counted[self._codes if self._within is None else self._codes[self._within]] = True
            self._counted[NOWHERE] = False
        return self._counted

    def where(self, of_place: Flags) -> Flags:
        """Nodes whose domain is flagged, by code."""
        return of_place[self._codes]

    def labelled(self) -> Flags:
        return self._codes >= 0

    def unlabelled(self) -> Flags | None:
        """None if every node has the label."""
        if self._unlabelled is None:
            lacking = self._codes < 0
            self._unlabelled = lacking, bool(lacking.any())
        lacking, is_any = self._unlabelled
        return lacking if is_any else None


class Tally:
    """Counts by node and by topology domain."""

    __slots__ = ("_by_slot", "_nodes", "_places", "_version")

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._by_slot: dict[int, int] = {}
        self._places: dict[Question, TopologyDomains] = {}
        self._version = nodes.version

    def __bool__(self) -> bool:
        return bool(self._by_slot)

    @property
    def bytes(self) -> int:
        return _SLOT_BYTES * len(self._by_slot)

    def add(self, slot: int, number: int) -> None:
        now = self._by_slot.get(slot, 0) + number
        if now:
            self._by_slot[slot] = now
        else:
            del self._by_slot[slot]
        if self._version == self._nodes.version:
            for places in self._places.values():
                places.add(slot, number)

    def gather(self, by_slot: Mapping[int, int]) -> None:
        """Adds these counts; only before the first query."""
        if not self._by_slot:
            self._by_slot = dict(by_slot)
            return
        for slot, number in by_slot.items():
            self._by_slot[slot] = self._by_slot.get(slot, 0) + number

    def places(
        self, key: str, *, name: Hashable = EVERYWHERE, within: Callable[[], Flags] | None = None
    ) -> TopologyDomains:
        """The counts by the values of one label; `name` identifies the subset of nodes that `within` computes."""
        if self._version != self._nodes.version:
            self.forget()
            self._version = self._nodes.version
        question = key, name
        found = self._places.get(question)
        if found is None:
            if len(self._places) >= _QUESTIONS:
                self.forget()
            found = self._counted(key, None if within is None else within())
            self._keep(question, found)
        else:
            self._nodes.shelf.get((self, question))
        return found

    def forget(self) -> None:
        for question in self._places:
            self._nodes.shelf.pop((self, question))
        self._places.clear()

    def _keep(self, question: Question, places: TopologyDomains) -> None:
        self._places[question] = places
        gone: list[tuple[Tally, Question]]
        gone = self._nodes.shelf.put((self, question), (self, question), places.bytes)
        for tally, other in gone:
            del tally._places[other]  # noqa: SLF001  (of its own class)

    def _counted(self, key: str, within: Flags | None) -> TopologyDomains:
        column = self._nodes.column(key)
        places = TopologyDomains(column.codes[: self._nodes.end], len(column.values), within)
        for slot, number in self._by_slot.items():
            places.add(slot, number)
        return places
