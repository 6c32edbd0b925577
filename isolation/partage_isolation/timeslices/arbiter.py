"""The arbiter of a node: which container may launch on which card, and until when.

Pure: events come in with their time, and the caller takes the actions after each call. No client report raises here: a
report whose epoch is not the line's current one is old or forged, and is ignored. Containers that share a budget are
one container here: one run queue entry, whose members are the processes of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices import members
from partage_isolation.timeslices.card import RunQueueEntry
from partage_isolation.timeslices.domains import CoschedulingDomain, FirstEpoch, Node, Place
from partage_isolation.timeslices.durations import Timing
from partage_isolation.timeslices.lifecycle import Member, TimeSliceEvent
from partage_isolation.timeslices.line import Notify, Shares, Write
from partage_isolation.timeslices.policies.policy import Policy
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import Gang


class Silent(NamedTuple):
    """A member that does not report whether its work is finished."""

    key: BudgetKey
    card: CardId
    member: Member


class Arbiter:
    """Schedules the cards of one node. A line begins closed, in the epoch that `first_epoch` returns."""

    def __init__(
        self,
        *,
        policy: Callable[[CardId], Policy],
        timing: Timing = Timing(),  # noqa: B008 - it is frozen
        first_epoch: FirstEpoch = lambda _key, _card: 0,
    ) -> None:
        self.node = Node(policy, timing, first_epoch)
        self._now = 0
        self.due: int | None = None
        """When `tick` must be called next."""

    def put(self, key: BudgetKey, card: CardId, *, share: int, limit: int, gang: Gang | None = None) -> None:
        """Set a container's share and limit of a card, in milli; a later call replaces the values.

        Containers of a gang of pods get their cards together, if these are different cards.
        """
        self.node.put((key, card), share, limit, self._now, gang)
        self.due = self.node.due()

    def drop(self, key: BudgetKey) -> None:
        self.node.drop(key, self._now)
        self.due = self.node.due()

    def joined(self, key: BudgetKey, card: CardId, member: Member, now: int) -> None:
        """A process is about to launch on the card."""
        found = self._at(key, card, now)
        if found is None:
            return
        entry, _ = found
        members.joins(entry, member, self._now)
        if not entry.card.policy.is_metering and not entry.is_open:
            entry.happens(TimeSliceEvent.FREED, self._now)
            self.node.lines.say(entry)
        self._go_on(self.node.regroup(entry, self._now))

    def left(self, key: BudgetKey, card: CardId, member: Member, now: int) -> None:
        """The process died, executed another program or disconnected."""
        found = self._at(key, card, now, member)
        if found is None:
            return
        entry, domain = found
        members.leaves(entry, member, self._now)
        if not entry.members:
            members.empties(entry, self.node.lines, self._now)
        else:
            domain.finish(entry.group, self._now)
        self._go_on(self.node.regroup(entry, self._now))

    def wanted(self, key: BudgetKey, card: CardId, member: Member, epoch: int, now: int) -> None:
        """One of the process's threads found the gate closed."""
        entry = self._entry(key, card, now, member, epoch)
        if entry is None:
            return
        if entry.is_busy:  # usually: it has the card, or waits already
            members.wants(entry, member, self._now)
            return
        domain = self.node.domain(card)
        domain.charge(self._now)
        if members.wants(entry, member, self._now):
            self._go_on(domain)

    def drained(  # noqa: PLR0913, PLR0917 - the packet has them all
        self,
        key: BudgetKey,
        card: CardId,
        member: Member,
        epoch: int,
        at: int,
        blocked: bool,  # noqa: FBT001
        now: int,
    ) -> None:
        """All that the process launched in that epoch is finished since `at`."""
        found = self._at(key, card, now, member, epoch)
        if found is None:
            return
        entry, domain = found
        members.has_drained(entry, member, at, self._now)
        if blocked:
            members.wants(entry, member, self._now)
        if not entry.undrained:
            domain.finish(entry.group, self._now)
            self._go_on(domain)

    def idle(self, key: BudgetKey, card: CardId, member: Member, epoch: int, now: int) -> None:
        """The process has finished and been quiet for a while, and none of its threads waits."""
        found = self._at(key, card, now, member, epoch)
        if found is None:
            return
        entry, domain = found
        members.is_idle(entry, member, self._now)
        domain.finish(entry.group, self._now)
        self._go_on(domain)

    def stopped(self, key: BudgetKey, card: CardId, member: Member, now: int) -> None:
        """A silent process is stopped: until it reports again, its launched work is not charged."""
        found = self._at(key, card, now, member)
        if found is not None and member in found[0].silent:
            found[0].members[member].is_stopped = True
            found[0].group.set_longest_wait()

    def turn(self, key: BudgetKey, card: CardId, *, is_in: bool, share: int, now: int) -> None:
        """Set whether its memory is on the card, without which it gets no time slices, and its effective share."""
        found = self._at(key, card, now)
        if found is None:
            return
        entry, domain = found
        entry.account.share, entry.is_out = share, not is_in
        if entry.is_out:
            domain.send_out(entry, self._now)
        self._go_on(domain)

    def entry(self, key: BudgetKey, card: CardId, now: int) -> RunQueueEntry | None:
        """The run queue entry, with its time charged until now."""
        found = self._at(key, card, now)
        return found[0] if found else None

    def silent(self) -> list[Silent]:
        """Members that are charged for work whose end they have not reported."""
        return [
            Silent(entry.key, card.id, member)
            for card in self.node.cards.values()
            for entry in card.behind
            for member in entry.silent
            if not entry.members[member].is_stopped
        ]

    def tick(self, now: int) -> None:
        self._now = max(self._now, now)
        for domain in self.node.domains:
            if domain.due <= self._now:
                domain.charge(self._now)
                domain.go_on(self._now)
        self.due = self.node.due()

    def take(self) -> list[Write | Notify]:
        return self.node.lines.take()

    def line(self, key: BudgetKey, card: CardId) -> Write:
        """The line's current state, for a page that was never written."""
        entry = self.node.entries[key, card]
        return Write(key, card, entry.line, entry.epoch, entry.deadline)

    def shares(self, now: int) -> Mapping[Place, Shares]:
        self._now = max(self._now, now)
        for card in self.node.cards.values():
            card.charge(self._now)
        return {place: entry.shares(self._now) for place, entry in self.node.entries.items()}

    def _at(
        self, key: BudgetKey, card: CardId, now: int, member: Member | None = None, epoch: int | None = None
    ) -> tuple[RunQueueEntry, CoschedulingDomain] | None:
        """The entry and its domain, with time charged; None if unknown, or if the epoch is not the current one."""
        entry = self._entry(key, card, now, member, epoch)
        if entry is None:
            return None
        domain = self.node.domain(card)
        domain.charge(self._now)
        return entry, domain

    def _entry(
        self, key: BudgetKey, card: CardId, now: int, member: Member | None, epoch: int | None
    ) -> RunQueueEntry | None:
        self._now = max(self._now, now)
        entry = self.node.entries.get((key, card))
        if entry is None or (epoch is not None and epoch != entry.epoch):
            return None
        return entry if member is None or member in entry.members else None

    def _go_on(self, domain: CoschedulingDomain) -> None:
        domain.go_on(self._now)
        self.due = self.node.due()
