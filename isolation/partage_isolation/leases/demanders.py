"""Groups that get cards together: a single container, or the containers of a gang of pods on different cards.

Pure. A container belongs to its gang while it has a process; the previous instance of a restarted container has none.
Containers of a gang that have no card in common form one group. A container on a card that the group already has is in
another group, and the two take turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from partage_isolation.leases.card import Card, Demander, Seat
from partage_isolation.leases.durations import Timing
from partage_isolation.names import BudgetKey
from partage_plugins.api.pods import Gang


class Demanders:
    __slots__ = ("_came", "_of", "_timing")

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._of: dict[BudgetKey, Demander] = {}
        self._came = 0

    def __iter__(self) -> Iterator[Demander]:
        return iter(dict.fromkeys(self._of.values()))

    def place(self, key: BudgetKey, card: Card, gang: Gang | None) -> Demander:
        """Return the group for the container's entry on one more card."""
        demander = self._of.get(key)
        if demander is None:
            return self._alone(key, gang)
        return self._apart(demander, key) if card in demander.cards else demander

    def drop(self, key: BudgetKey) -> list[Seat]:
        """Remove the container and return its run queue entries."""
        demander = self._of.pop(key, None)
        return demander.let_go(key) if demander else []

    def gather(self, gang: Gang) -> bool:
        """Regroup a gang after one of its containers came or went; return whether the grouping has changed."""
        before = dict(self._of)
        for demander in self._in(gang):
            for key in demander.keys:
                if len(demander.keys) > 1 and not demander.is_there(key):
                    self._apart(demander, key)
        parties: list[Demander] = []
        for demander in self._in(gang):
            if not any(map(demander.is_there, demander.keys)):
                continue
            party = next((each for each in parties if each.cards.isdisjoint(demander.cards)), None)
            if party is None:
                parties.append(demander)
            else:
                self._unite(party, demander)
        return self._of != before

    def _in(self, gang: Gang) -> list[Demander]:
        return sorted((each for each in self if each.gang == gang), key=lambda each: each.number)

    def _alone(self, key: BudgetKey, gang: Gang | None) -> Demander:
        self._came += 1
        demander = self._of[key] = Demander(self._came, self._timing, gang)
        return demander

    def _apart(self, demander: Demander, key: BudgetKey) -> Demander:
        own = self._alone(key, demander.gang)
        own.take_in(demander.let_go(key))
        return own

    def _unite(self, party: Demander, other: Demander) -> None:
        for key in other.keys:
            self._of[key] = party
        party.join(other)
