"""Groups that get cards together: a single container, or the containers of a gang of pods on different cards.

Pure. A container belongs to its gang while it has a process; the previous instance of a restarted container has none.
Containers of a gang that have no card in common form one group. A container on a card that the group already has is in
another group, and the two take turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.card import Card, Group, RunQueueEntry
from partage_isolation.timeslices.durations import Timing
from partage_plugins.api.pods import Gang


class Groups:
    __slots__ = ("_came", "_of", "_timing")

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._of: dict[BudgetKey, Group] = {}
        self._came = 0

    def __iter__(self) -> Iterator[Group]:
        return iter(dict.fromkeys(self._of.values()))

    def place(self, key: BudgetKey, card: Card, gang: Gang | None) -> Group:
        """Return the group for the container's entry on one more card."""
        group = self._of.get(key)
        if group is None:
            return self._alone(key, gang)
        return self._apart(group, key) if card in group.cards else group

    def drop(self, key: BudgetKey) -> list[RunQueueEntry]:
        """Remove the container and return its run queue entries."""
        group = self._of.pop(key, None)
        return group.let_go(key) if group else []

    def gather(self, gang: Gang) -> bool:
        """Regroup a gang after one of its containers came or went; return whether the grouping has changed."""
        before = dict(self._of)
        for group in self._in(gang):
            for key in group.keys:
                if len(group.keys) > 1 and not group.is_there(key):
                    self._apart(group, key)
        parties: list[Group] = []
        for group in self._in(gang):
            if not any(map(group.is_there, group.keys)):
                continue
            party = next((each for each in parties if each.cards.isdisjoint(group.cards)), None)
            if party is None:
                parties.append(group)
            else:
                self._unite(party, group)
        return self._of != before

    def _in(self, gang: Gang) -> list[Group]:
        return sorted((each for each in self if each.gang == gang), key=lambda each: each.number)

    def _alone(self, key: BudgetKey, gang: Gang | None) -> Group:
        self._came += 1
        group = self._of[key] = Group(self._came, self._timing, gang)
        return group

    def _apart(self, group: Group, key: BudgetKey) -> Group:
        own = self._alone(key, group.gang)
        own.take_in(group.let_go(key))
        return own

    def _unite(self, party: Group, other: Group) -> None:
        for key in other.keys:
            self._of[key] = party
        party.join(other)
