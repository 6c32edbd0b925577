"""All that one audit saw, in types. Pure.

Books are read before and after the cards are asked: what changed meanwhile is held against nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property

from partage_isolation.broker.facts import ContainerFacts, ProcessFacts
from partage_isolation.watching.proofs import Birth
from partage_isolation.watching.use import Sample
from partage_plugins.vocabulary.names import CardId, ContainerKey

Facts = Mapping[ContainerKey, ContainerFacts]


@dataclass(frozen=True)
class Sight:
    """What one process showed."""

    pid: int
    birth: Birth
    key: ContainerKey | None
    """The granted container that it is in, as far as the runtime has named it."""
    has_library: bool | None
    wrong_places: tuple[str, ...] | None
    """None, as above: it could not be seen."""


@dataclass(frozen=True)
class Round:
    """All that one audit saw."""

    now_s: float
    before: Facts
    after: Facts
    uses: Mapping[CardId, Sample | None]
    """None: the driver did not answer."""
    running: Mapping[ContainerKey, bool] | None
    """Containers that the runtime has, and whether they run; None: it did not answer."""
    sights: Mapping[int, Sight] = field(default_factory=dict)
    """By pid; a process that is not here is gone."""
    firsts: Mapping[ContainerKey, Sight] = field(default_factory=dict)
    """The first process of each running container."""
    folders: AbstractSet[ContainerKey] = frozenset()
    """Containers for which something was prepared on the node."""
    gone: AbstractSet[int] = frozenset()
    """Pids in the books that are no such processes any more."""

    def with_looked(
        self, *, sights: Mapping[int, Sight], firsts: Mapping[ContainerKey, Sight], gone: AbstractSet[int]
    ) -> Round:
        """The same, with what processes showed afterwards."""
        return replace(self, sights=sights, firsts=firsts, gone=gone)

    @cached_property
    def rows(self) -> Mapping[int, tuple[ProcessFacts, ...]]:
        """All rows that the books had or have of a pid."""
        found = dict[int, tuple[ProcessFacts, ...]]()
        for row in (*rows_of(self.before), *rows_of(self.after)):
            found[row.pid] = (*found.get(row.pid, ()), row)
        return found

    @cached_property
    def ledger(self) -> Mapping[tuple[int, CardId], int]:
        """What the books had or have, whichever is more, of a process: between the two the cards were asked."""
        before, after = _charged(self.before), _charged(self.after)
        return {place: max(before.get(place, 0), after.get(place, 0)) for place in before.keys() | after.keys()}

    def first_mounts(self, key: ContainerKey) -> tuple[str, ...] | None:
        """The wrong places of a container's first process, if that was seen."""
        first = self.firsts.get(key)
        return None if first is None else first.wrong_places

    def owner(self, pid: int) -> ContainerKey | None:
        """Whose process it is."""
        sight = self.sights.get(pid)
        if sight is not None and sight.key is not None:
            return sight.key
        return next((row.key for row in self.rows.get(pid, ()) if row.state != "dead"), None)


def rows_of(facts: Facts) -> Iterator[ProcessFacts]:
    """All of them."""
    return (row for container in facts.values() for row in container.processes)


def _charged(facts: Facts) -> Mapping[tuple[int, CardId], int]:
    found = dict[tuple[int, CardId], int]()
    for row in rows_of(facts):
        for card, amounts in row.cards.items():
            found[row.pid, card] = found.get((row.pid, card), 0) + amounts.charged
    return found
