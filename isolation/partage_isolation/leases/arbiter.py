"""The arbiter of a node: which container may launch on which card, and until when.

Pure: events come in with their time, and the caller takes the actions after each call. No client report raises here: a
report whose epoch is not the line's current one is old or forged, and is ignored. Containers that share a budget are
one container here: one run queue entry, whose members are the processes of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from partage_isolation.leases import members
from partage_isolation.leases.card import Seat
from partage_isolation.leases.durations import Timing
from partage_isolation.leases.life import LeaseEvent, Member
from partage_isolation.leases.line import Hint, Shares, Write
from partage_isolation.leases.node import FirstEpoch, Island, Node, Place
from partage_isolation.leases.policies.policy import Policy
from partage_isolation.names import BudgetKey
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
        seat, _ = found
        members.joins(seat, member, self._now)
        if not seat.card.policy.is_metering and not seat.is_open:
            seat.happens(LeaseEvent.FREED, self._now)
            self.node.lines.say(seat)
        self._go_on(self.node.regroup(seat, self._now))

    def left(self, key: BudgetKey, card: CardId, member: Member, now: int) -> None:
        """The process died, executed another program or disconnected."""
        found = self._at(key, card, now, member)
        if found is None:
            return
        seat, island = found
        members.leaves(seat, member, self._now)
        if not seat.members:
            members.empties(seat, self.node.lines, self._now)
        else:
            island.finish(seat.demander, self._now)
        self._go_on(self.node.regroup(seat, self._now))

    def wanted(self, key: BudgetKey, card: CardId, member: Member, epoch: int, now: int) -> None:
        """One of the process's threads found the gate closed."""
        seat = self._seat(key, card, now, member, epoch)
        if seat is None:
            return
        if seat.is_busy:  # usually: it has the card, or waits already
            members.wants(seat, member, self._now)
            return
        island = self.node.island(card)
        island.charge(self._now)
        if members.wants(seat, member, self._now):
            self._go_on(island)

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
        seat, island = found
        members.has_drained(seat, member, at, self._now)
        if blocked:
            members.wants(seat, member, self._now)
        if not seat.undrained:
            island.finish(seat.demander, self._now)
            self._go_on(island)

    def idle(self, key: BudgetKey, card: CardId, member: Member, epoch: int, now: int) -> None:
        """The process has finished and been quiet for a while, and none of its threads waits."""
        found = self._at(key, card, now, member, epoch)
        if found is None:
            return
        seat, island = found
        members.is_idle(seat, member, self._now)
        island.finish(seat.demander, self._now)
        self._go_on(island)

    def stopped(self, key: BudgetKey, card: CardId, member: Member, now: int) -> None:
        """A silent process is stopped: until it reports again, its launched work is not charged."""
        found = self._at(key, card, now, member)
        if found is not None and member in found[0].silent:
            found[0].members[member].is_stopped = True
            found[0].demander.set_longest_wait()

    def turn(self, key: BudgetKey, card: CardId, *, is_in: bool, share: int, now: int) -> None:
        """Set whether its memory is on the card, without which it gets no time slices, and its effective share."""
        found = self._at(key, card, now)
        if found is None:
            return
        seat, island = found
        seat.account.share, seat.is_out = share, not is_in
        if seat.is_out:
            island.send_out(seat, self._now)
        self._go_on(island)

    def seat(self, key: BudgetKey, card: CardId, now: int) -> Seat | None:
        """The run queue entry, with its time charged until now."""
        found = self._at(key, card, now)
        return found[0] if found else None

    def silent(self) -> list[Silent]:
        """Members that are charged for work whose end they have not reported."""
        return [
            Silent(seat.key, card.id, member)
            for card in self.node.cards.values()
            for seat in card.behind
            for member in seat.silent
            if not seat.members[member].is_stopped
        ]

    def tick(self, now: int) -> None:
        self._now = max(self._now, now)
        for island in self.node.islands:
            if island.due <= self._now:
                island.charge(self._now)
                island.go_on(self._now)
        self.due = self.node.due()

    def take(self) -> list[Write | Hint]:
        return self.node.lines.take()

    def line(self, key: BudgetKey, card: CardId) -> Write:
        """The line's current state, for a page that was never written."""
        seat = self.node.seats[key, card]
        return Write(key, card, seat.line, seat.epoch, seat.deadline)

    def shares(self, now: int) -> Mapping[Place, Shares]:
        self._now = max(self._now, now)
        for card in self.node.cards.values():
            card.charge(self._now)
        return {place: seat.shares(self._now) for place, seat in self.node.seats.items()}

    def _at(
        self, key: BudgetKey, card: CardId, now: int, member: Member | None = None, epoch: int | None = None
    ) -> tuple[Seat, Island] | None:
        """The entry and its domain, with time charged; None if unknown, or if the epoch is not the current one."""
        seat = self._seat(key, card, now, member, epoch)
        if seat is None:
            return None
        island = self.node.island(card)
        island.charge(self._now)
        return seat, island

    def _seat(self, key: BudgetKey, card: CardId, now: int, member: Member | None, epoch: int | None) -> Seat | None:
        self._now = max(self._now, now)
        seat = self.node.seats.get((key, card))
        if seat is None or (epoch is not None and epoch != seat.epoch):
            return None
        return seat if member is None or member in seat.members else None

    def _go_on(self, island: Island) -> None:
        island.go_on(self._now)
        self.due = self.node.due()
