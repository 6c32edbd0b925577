"""Cards, the run queue entries of containers on them, and the groups that get cards together.

Pure. A *member* is a process that has joined. A member that did not report in time that its work was finished is
*silent*: the card does not wait for it until it reports in the current epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.durations import NEVER, Timing
from partage_isolation.timeslices.lifecycle import (
    IDLE,
    TRAITS,
    TRANSITIONS,
    Member,
    Presence,
    TimeSliceEvent,
    TimeSliceState,
)
from partage_isolation.timeslices.line import Drains, LineState, Shares
from partage_isolation.timeslices.meter import Counts, Meter, divided
from partage_isolation.timeslices.policies.policy import Policy, Tally
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import Gang


@dataclass(slots=True, eq=False)
class RunQueueEntry:
    """A container's run queue entry on a card: its members, their reports, and its time slice."""

    key: BudgetKey
    card: Card
    account: Tally
    epoch: int
    drain_ns: int
    """Expected drain time after a time slice: the longest recent one, decaying with each drain."""
    wanted: Meter
    got: Meter
    group: Group
    life: TimeSliceState = TimeSliceState.EMPTY
    is_open: bool = False
    """Its processes may launch, unless the deadline has passed."""
    is_busy: bool = False
    """It wants the card or has it."""
    is_waiting: bool = False
    has_timeslice: bool = False
    is_closing: bool = False
    look_at: int = 0
    """When to check a time slice: at its deadline, or earlier to renew it."""
    line: LineState = LineState.CLOSED
    deadline: int = 0
    members: dict[Member, Presence] = field(default_factory=dict[Member, Presence])
    undrained: set[Member] = field(default_factory=set[Member])
    """Members that closing still waits for."""
    silent: set[Member] = field(default_factory=set[Member])
    granted_at: int = 0
    ended_at: int = 0
    """End of its last time slice, by deadline or revocation."""
    closing_at: int = 0
    """Start of the wait for its work to drain."""
    renewals: int = 0
    waiting_since: int = 0
    busy_since: int = 0
    charged: int = 0
    charged_from: int = 0
    is_awake: bool = False
    """It has just started to want the card, and may preempt another container."""
    is_quiet: bool = True
    """It was idle when it last had the card."""
    rested_at: int = 0
    """When it last gave the card up without waiting for it again."""
    is_capped: bool = False
    """It wants the card, but its ceiling prevents that, or `is_out` does."""
    is_out: bool = False
    """Its memory is not on the card, so it gets no time slices."""
    is_passed: bool = False
    """It was first on this card, but its gang could not get another card."""
    overlap_paid: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def has_gone(self) -> bool:
        """It does not want the card, but was not idle when it last had it: it may be between two launches."""
        return not (self.is_quiet or self.is_busy) and self.life is IDLE

    def still_running(self) -> int:
        """The number of silent members that may have work in flight."""
        return sum([not self.members[member].is_stopped for member in self.silent])

    def running(self) -> int:
        """The number of members that may have work in flight while it holds the card."""
        return sum(
            [not (each.is_idle or each.is_stopped or each.drained == self.epoch) for each in self.members.values()]
        )

    def happens(self, event: TimeSliceEvent, now: int) -> None:
        was_busy, self.life = self.is_busy, TRANSITIONS[self.life, event]
        self.is_open, self.is_busy, self.is_waiting, self.has_timeslice, self.is_closing = TRAITS[self.life]
        if self.is_busy is not was_busy:
            if was_busy:
                self.wanted.add(self.busy_since, now, now - self.busy_since)
            self.busy_since = now

    def settle(self, now: int) -> None:
        self.got.add(self.charged_from, now, self.charged)
        self.charged, self.charged_from = 0, now
        if self.is_busy:
            self.wanted.add(self.busy_since, now, now - self.busy_since)
            self.busy_since = now

    def is_overdue(self, now: int) -> bool:
        """It has waited too long, although it has a share and no ceiling prevents it from running."""
        if now < self.card.patient_until or not self.is_waiting or self.overdue_at > now:
            return False
        return self.account.share > 0 and not self.is_capped

    def begins_to_wait(self, now: int) -> None:
        """Start to count its wait from now."""
        self.waiting_since = now
        self.card.policy.asks(self.account, now)
        self.card.patient_until = min(self.card.patient_until, self.overdue_at)

    @property
    def is_at_rest(self) -> bool:
        """It has no time slice, and none is draining."""
        return not (self.is_open or self.is_closing)

    @property
    def held_ns(self) -> int:
        """Total time for which it has had the card."""
        return self.got.total + self.charged

    @property
    def overdue_at(self) -> int:
        return self.waiting_since + self.group.longest_wait_ns

    def waits(self) -> bool:
        return any([presence.wants for presence in self.members.values()])  # noqa: C419 - a list is faster

    def forget_wants(self, epoch: int | None = None) -> None:
        """Forget wants, which members repeat in a new epoch, except of those that ended `epoch` and still wait."""
        for presence in self.members.values():
            presence.is_idle = False
            presence.wants &= epoch is not None and presence.drained == epoch

    def says_idle(self) -> bool:
        """Some member was idle in this epoch. It may have started again, and would not report that."""
        return any([presence.is_idle for presence in self.members.values()])  # noqa: C419 - as above

    def all_finished(self) -> bool:
        """Each member that is not silent has ended this time slice itself, or was idle."""
        speaks = False
        for each in self.members.values():
            if each.silent_since is None:
                speaks = True
                if not (each.is_idle or each.drained == self.epoch):
                    return False
        return speaks

    def measured(self, drain_ns: int) -> None:
        """Record that its work needed this long to drain."""
        self.drain_ns = max(drain_ns, self.drain_ns - (self.drain_ns - drain_ns) // 16)

    def shares(self, now: int) -> Shares:
        self.settle(now)
        return Shares(
            wanted=self.wanted.windows(now),
            got=self.got.windows(now),
            timeslices=self.counts.timeslices,
            revocations=self.counts.revocations,
            drains=Drains(self.counts.drains, self.counts.drains_ns),
            overlaps=self.counts.overlaps,
            state=self.line if self.is_open else LineState.CLOSED,
            is_waiting=self.is_waiting,
            members=len(self.members),
            wanted_ns=self.wanted.total,
            got_ns=self.got.total,
        )


@dataclass(slots=True, eq=False)
class Card:
    """A card: its run queue, its holder, and how its time is charged."""

    id: CardId
    policy: Policy
    at: int = 0
    """Time up to which the card has been charged."""
    patient_until: int = NEVER
    """Until then no container has waited too long here; a lower bound."""
    entries: list[RunQueueEntry] = field(default_factory=list[RunQueueEntry])
    holder: RunQueueEntry | None = None
    behind: list[RunQueueEntry] = field(default_factory=list[RunQueueEntry])
    """Entries with silent members."""
    clocks: list[int] = field(default_factory=lambda: [0, 0])
    """Virtual time reached, of containers without a share and with one; it never goes back."""
    charged: int = 0
    """Total of all charges."""
    busy: int = 0
    """Time that was charged to any container."""

    def charge(self, now: int) -> None:
        """Charge the time until now to the holder, or to all whose work may run, in proportion to their processes."""
        since, self.at = now - self.at, now
        if since <= 0:
            return
        if not self.behind:
            if self.holder:
                self.busy += since
                self._pay(self.holder, since, now)
        elif running := self._running():
            self.busy += since
            for (entry, _), part in zip(running, divided(since, [processes for _, processes in running]), strict=True):
                self._pay(entry, part, now)

    def _running(self) -> list[tuple[RunQueueEntry, int]]:
        """The holder and others with running silent members, with their number of processes that may have work."""
        found = [(entry, entry.still_running()) for entry in self.behind if entry is not self.holder]
        if self.holder:
            found.append((self.holder, max(1, self.holder.running())))
        return [each for each in found if each[1]]

    def _pay(self, entry: RunQueueEntry, amount: int, now: int) -> None:
        self.policy.charge(entry.account, amount, now)
        entry.charged += amount
        self.charged += amount
        if entry is not self.holder:
            entry.overlap_paid += amount

    def refund(self, entry: RunQueueEntry, amount: int, now: int) -> None:
        """Refund time after work that had ended long before it was reported. This puts the entry ahead of no other."""
        had = entry.account.virtual
        self.policy.charge(entry.account, -amount, now)
        entry.account.virtual = max(entry.account.virtual, min(had, self.clocks[entry.account.share > 0]))

    def lets_in(self, entry: RunQueueEntry, now: int) -> int:
        """Return when its ceiling lets it run; if that is now or earlier, return it to the competition."""
        at = NEVER if entry.is_out else self.policy.opens_at(entry.account, now)
        if at > now:
            entry.is_capped = True
        elif entry.is_capped or entry.is_passed:
            entry.is_awake |= entry.is_capped
            entry.is_capped = entry.is_passed = False
            self.came(entry)
        return at

    def is_contended(self, entry: RunQueueEntry, since: int) -> bool:
        """Another container waits and may run, or had the card after `since` and was not idle then."""
        for other in self.entries:
            if other is not entry:
                if other.is_waiting:
                    if not other.is_capped:
                        return True
                elif other.rested_at > since and other.has_gone:
                    return True
        return False

    def kept_until(self, entry: RunQueueEntry, now: int, keep_ns: int) -> int:
        """Until when the card is kept for a container that ranks before it and had it a moment ago, not idle."""
        gone = [other for other in self.entries if other.rested_at + keep_ns > now and other.has_gone]
        if not gone or not self.policy.renews:
            return 0
        rank = self.policy.rank(entry.account, now)
        first = [other.rested_at for other in gone if self.policy.rank(other.account, now) < rank]
        return max(first) + keep_ns if first else 0

    def came(self, entry: RunQueueEntry) -> None:
        """Re-enter the competition, with a head start of at most a credit, or what the others owed it when it left."""
        self.policy.came(entry.account, self._keep_time(entry, self._others(entry)))

    def goes(self, entry: RunQueueEntry, *, is_back: bool) -> None:
        """Give the card up. Unless it wants the card again immediately, record what others owe it now."""
        virtual, others = entry.account.virtual, self._others(entry)
        self._keep_time(entry, [*others, virtual])
        if not is_back:
            entry.account.lead = max(0, min(others, default=virtual) - virtual)

    def _others(self, entry: RunQueueEntry) -> list[int]:
        """Virtual times of the others of its class, with a share or without, that want the card or have it."""
        has_share = entry.account.share > 0
        return [
            other.account.virtual
            for other in self.entries
            if other.is_busy and other is not entry and not other.is_capped and (other.account.share > 0) == has_share
        ]

    def _keep_time(self, entry: RunQueueEntry, clocks: Sequence[int]) -> int:
        """Advance the virtual time of its class to the smallest of the clocks."""
        kind = entry.account.share > 0
        self.clocks[kind] = max(self.clocks[kind], min(clocks, default=0))
        return self.clocks[kind]

    def patience_ends(self, now: int) -> int:
        ends = [entry.overdue_at for entry in self.entries if entry.is_waiting]
        self.patient_until = min(ends, default=NEVER)
        return min((at for at in ends if at > now), default=NEVER)

    def is_slow(self, entry: RunQueueEntry, drain_ns: int) -> bool:
        """Another busy container's work takes longer than that to drain."""
        return any(other is not entry and other.is_busy and other.drain_ns > drain_ns for other in self.entries)

    def is_alone(self, entry: RunQueueEntry) -> bool:
        return all(other is entry or other.life is TimeSliceState.EMPTY for other in self.entries)

    def forget(self, entry: RunQueueEntry) -> None:
        self.entries.remove(entry)
        if self.holder is entry:
            self.holder = None
        if entry in self.behind:
            self.behind.remove(entry)


@dataclass(slots=True, eq=False)
class Group:
    """Run queue entries that are granted together: of one container, or of a gang's containers on different cards.

    It gets all cards that it needs in one step or none, so no two groups can deadlock. Containers of one gang on the
    same card can't have it together: they are in different groups.
    """

    number: int
    """By age: the oldest wins a tie."""
    timing: Timing
    gang: Gang | None = None
    """A gang of pods."""
    entries: list[RunQueueEntry] = field(default_factory=list[RunQueueEntry])
    """Sorted by card id."""
    is_reopened: bool = False
    """This closing has been interrupted once."""

    longest_wait_ns: int = 0
    """After this wait it is picked next, regardless of its debt."""
    torn_turns: int = 0
    """How often it was picked early because it was torn."""

    def __post_init__(self) -> None:
        self.set_longest_wait()

    def set_longest_wait(self) -> None:
        """Set the longest wait: short, then doubling, for a torn gang, which harms others until it has every card."""
        timing = self.timing
        if self.is_torn():
            self.longest_wait_ns = min(timing.longest_wait_ns, timing.quantum_ns << min(self.torn_turns, 10))
        else:
            self.longest_wait_ns, self.torn_turns = timing.longest_wait_ns, 0
        for entry in self.entries:
            if entry.is_waiting:
                entry.begins_to_wait(entry.waiting_since)

    def is_torn(self) -> bool:
        """Its work on one card does not finish, and may depend on launches blocked at another card's gate."""
        return len(self.entries) > 1 and any(entry.still_running() for entry in self.entries)

    @property
    def cards(self) -> frozenset[Card]:
        return frozenset(entry.card for entry in self.entries)

    @property
    def keys(self) -> tuple[BudgetKey, ...]:
        """The containers of its entries."""
        return tuple(dict.fromkeys(entry.key for entry in self.entries))

    def is_there(self, key: BudgetKey) -> bool:
        """The container has a process on some card."""
        return any(entry.key == key and entry.life is not TimeSliceState.EMPTY for entry in self.entries)

    def take_in(self, entries: Iterable[RunQueueEntry]) -> None:
        self.entries = sorted([*self.entries, *entries], key=lambda entry: entry.card.id)
        for entry in self.entries:
            entry.group = self
        self.set_longest_wait()

    def join(self, other: Group) -> None:
        """Take over the other's entries; used-up reopening and torn turns stay used up."""
        self.is_reopened |= other.is_reopened
        self.torn_turns = max(self.torn_turns, other.torn_turns)
        entries, other.entries = other.entries, []
        self.take_in(entries)

    def let_go(self, key: BudgetKey) -> list[RunQueueEntry]:
        """Remove the container's entries and return them."""
        gone = [entry for entry in self.entries if entry.key == key]
        self.entries = [entry for entry in self.entries if entry.key != key]
        self.set_longest_wait()
        return gone

    def needs(self) -> tuple[RunQueueEntry, ...]:
        """The entries to grant together now; empty if it wants nothing or is still closing."""
        entries = self.entries
        if len(entries) == 1:
            return (entries[0],) if entries[0].is_waiting else ()
        lives = [entry.life for entry in entries]
        if TimeSliceState.WAITING not in lives or TimeSliceState.CLOSING in lives:
            return ()
        # Includes entries without a waiting thread that were not idle when they last had the card.
        return tuple(
            entry for entry in entries if entry.is_waiting or (entry.has_gone and entry.card.policy.is_metering)
        )

    def closing(self) -> list[RunQueueEntry]:
        return [entry for entry in self.entries if entry.is_closing]

    def is_drained(self) -> bool:
        """It is closing, and no member is waited for any more."""
        closing = self.closing()
        return bool(closing) and not any([entry.undrained for entry in closing])  # noqa: C419 - a list is faster

    def open_entries(self) -> list[RunQueueEntry]:
        return [entry for entry in self.entries if entry.is_open and entry.card.policy.is_metering]
