"""Cards, the seats of containers on them, and who demands which seats together.

Pure. A *member* is a process that has joined. A member that did not say in time that its work was done is *silent*: the
card does not wait for it until it speaks of the present line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from partage_isolation.leases.durations import NEVER, Timing
from partage_isolation.leases.life import IDLE, TRAITS, TRANSITIONS, LeaseEvent, Life, Member, Presence
from partage_isolation.leases.line import Drains, LineState, Shares
from partage_isolation.leases.meter import Counts, Meter, divided
from partage_isolation.leases.policies.policy import Policy, Tally
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.pods import Gang


@dataclass(slots=True, eq=False)
class Seat:
    """Of a container on a card: who is there, what they said, and what became of its lease."""

    key: BudgetKey
    card: Card
    account: Tally
    epoch: int
    drain_ns: int
    """How long its work is expected to need after a lease: the longest of late, and less each time."""
    wanted: Meter
    got: Meter
    demander: Demander
    life: Life = Life.EMPTY
    is_open: bool = False
    """Its processes may launch, unless the deadline has passed."""
    is_busy: bool = False
    """It wants the card or has it."""
    is_waiting: bool = False
    is_leased: bool = False
    is_closing: bool = False
    look_at: int = 0
    """When a lease has to be looked at: at its deadline, or before that to be renewed."""
    line: LineState = LineState.CLOSED
    deadline: int = 0
    members: dict[Member, Presence] = field(default_factory=dict[Member, Presence])
    undrained: set[Member] = field(default_factory=set[Member])
    """Members that its closing still waits for."""
    silent: set[Member] = field(default_factory=set[Member])
    granted_at: int = 0
    ended_at: int = 0
    """When its last lease was over, by its deadline or by our word."""
    closing_at: int = 0
    """When we began to wait for its work."""
    renewals: int = 0
    waiting_since: int = 0
    busy_since: int = 0
    charged: int = 0
    charged_from: int = 0
    is_awake: bool = False
    """It has just come to want the card, and may end another's turn."""
    is_quiet: bool = True
    """It was idle when it last had the card."""
    rested_at: int = 0
    """When it last gave the card up without waiting for it again."""
    is_capped: bool = False
    """It wants the card, and its ceiling keeps it from it, or that it is out."""
    is_out: bool = False
    """Its memory is not on the card, so it has no turns."""
    is_passed: bool = False
    """It was its turn here, and another card of its gang could not be had."""
    overlap_paid: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def has_gone(self) -> bool:
        """It does not want the card, and was not idle when it last had it: it may be between two launches."""
        return not (self.is_quiet or self.is_busy) and self.life is IDLE

    def still_running(self) -> int:
        """How many silent members may have work under way."""
        return sum([not self.members[member].is_stopped for member in self.silent])

    def running(self) -> int:
        """How many members may have work under way while it holds the card."""
        return sum(
            [not (each.is_idle or each.is_stopped or each.drained == self.epoch) for each in self.members.values()]
        )

    def happens(self, event: LeaseEvent, now: int) -> None:
        was_busy, self.life = self.is_busy, TRANSITIONS[self.life, event]
        self.is_open, self.is_busy, self.is_waiting, self.is_leased, self.is_closing = TRAITS[self.life]
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
        """It has waited for too long, although it has a share and no ceiling keeps it."""
        if now < self.card.patient_until or not self.is_waiting or self.overdue_at > now:
            return False
        return self.account.share > 0 and not self.is_capped

    def begins_to_wait(self, now: int) -> None:
        """Its wait is counted from now on."""
        self.waiting_since = now
        self.card.policy.asks(self.account, now)
        self.card.patient_until = min(self.card.patient_until, self.overdue_at)

    @property
    def is_at_rest(self) -> bool:
        """It has no turn, and none whose work is waited for."""
        return not (self.is_open or self.is_closing)

    @property
    def held_ns(self) -> int:
        """How long it has had the card, in all."""
        return self.got.total + self.charged

    @property
    def overdue_at(self) -> int:
        return self.waiting_since + self.demander.longest_wait_ns

    def waits(self) -> bool:
        return any([presence.wants for presence in self.members.values()])  # noqa: C419 - a list is faster

    def forget_wants(self, epoch: int | None = None) -> None:
        """Members that still wait say so again under another epoch; one that ended the last epoch itself waits on."""
        for presence in self.members.values():
            presence.is_idle = False
            presence.wants &= epoch is not None and presence.drained == epoch

    def says_idle(self) -> bool:
        """Some member was idle under this epoch: it may have begun again, and would not say so."""
        return any([presence.is_idle for presence in self.members.values()])  # noqa: C419 - as above

    def all_finished(self) -> bool:
        """Each member that speaks has ended this lease itself, or was idle."""
        speaks = False
        for each in self.members.values():
            if each.silent_since is None:
                speaks = True
                if not (each.is_idle or each.drained == self.epoch):
                    return False
        return speaks

    def measured(self, drain_ns: int) -> None:
        """Its work needed so long after a lease."""
        self.drain_ns = max(drain_ns, self.drain_ns - (self.drain_ns - drain_ns) // 16)

    def shares(self, now: int) -> Shares:
        self.settle(now)
        return Shares(
            wanted=self.wanted.windows(now),
            got=self.got.windows(now),
            leases=self.counts.leases,
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
    """Who has a seat there, who holds it, and who pays for its time."""

    id: CardId
    policy: Policy
    at: int = 0
    """Until when its time is charged."""
    patient_until: int = NEVER
    """No container has waited here for too long before that; it may be later."""
    seats: list[Seat] = field(default_factory=list[Seat])
    holder: Seat | None = None
    behind: list[Seat] = field(default_factory=list[Seat])
    """Those with silent members."""
    clocks: list[int] = field(default_factory=lambda: [0, 0])
    """How far virtual time has come, for those without a share and with one; it never goes back."""
    charged: int = 0
    """All that was ever charged."""
    busy: int = 0
    """Time that was charged to any container."""

    def charge(self, now: int) -> None:
        """Time until now: to the holder, or to all whose work may run, by their processes."""
        since, self.at = now - self.at, now
        if since <= 0:
            return
        if not self.behind:
            if self.holder:
                self.busy += since
                self._pay(self.holder, since, now)
        elif running := self._running():
            self.busy += since
            for (seat, _), part in zip(running, divided(since, [processes for _, processes in running]), strict=True):
                self._pay(seat, part, now)

    def _running(self) -> list[tuple[Seat, int]]:
        """The holder, and those with silent members that are not stopped; and how many may have work on the card."""
        found = [(seat, seat.still_running()) for seat in self.behind if seat is not self.holder]
        if self.holder:
            found.append((self.holder, max(1, self.holder.running())))
        return [each for each in found if each[1]]

    def _pay(self, seat: Seat, amount: int, now: int) -> None:
        self.policy.charge(seat.account, amount, now)
        seat.charged += amount
        self.charged += amount
        if seat is not self.holder:
            seat.overlap_paid += amount

    def refund(self, seat: Seat, amount: int, now: int) -> None:
        """It turned out that its work had ended long before it said so; it gets ahead of no other by that."""
        had = seat.account.virtual
        self.policy.charge(seat.account, -amount, now)
        seat.account.virtual = max(seat.account.virtual, min(had, self.clocks[seat.account.share > 0]))

    def lets_in(self, seat: Seat, now: int) -> int:
        """When its ceiling lets it run; where that is not after now, it is among the others again."""
        at = NEVER if seat.is_out else self.policy.opens_at(seat.account, now)
        if at > now:
            seat.is_capped = True
        elif seat.is_capped or seat.is_passed:
            seat.is_awake |= seat.is_capped
            seat.is_capped = seat.is_passed = False
            self.came(seat)
        return at

    def is_contended(self, seat: Seat, since: int) -> bool:
        """Another container waits for it and could have it, or had it after that time and was not idle then."""
        for other in self.seats:
            if other is not seat:
                if other.is_waiting:
                    if not other.is_capped:
                        return True
                elif other.rested_at > since and other.has_gone:
                    return True
        return False

    def kept_until(self, seat: Seat, now: int, keep_ns: int) -> int:
        """Until when the card is kept for a container before it, which had the card a moment ago and was not idle."""
        gone = [other for other in self.seats if other.rested_at + keep_ns > now and other.has_gone]
        if not gone or not self.policy.renews:
            return 0
        rank = self.policy.rank(seat.account, now)
        first = [other.rested_at for other in gone if self.policy.rank(other.account, now) < rank]
        return max(first) + keep_ns if first else 0

    def came(self, seat: Seat) -> None:
        """It is back: it is ahead of the others by a credit at most, or by what they owed it when it left."""
        self.policy.came(seat.account, self._keep_time(seat, self._others(seat)))

    def goes(self, seat: Seat, *, is_back: bool) -> None:
        """It gives the card up. Unless it is back at once, it keeps what others owe it now."""
        virtual, others = seat.account.virtual, self._others(seat)
        self._keep_time(seat, [*others, virtual])
        if not is_back:
            seat.account.lead = max(0, min(others, default=virtual) - virtual)

    def _others(self, seat: Seat) -> list[int]:
        """Clocks of others of its kind, with a share or without, that want the card or have it."""
        has_share = seat.account.share > 0
        return [
            other.account.virtual
            for other in self.seats
            if other.is_busy and other is not seat and not other.is_capped and (other.account.share > 0) == has_share
        ]

    def _keep_time(self, seat: Seat, clocks: Sequence[int]) -> int:
        """How far virtual time has come: to the clock that is furthest behind."""
        kind = seat.account.share > 0
        self.clocks[kind] = max(self.clocks[kind], min(clocks, default=0))
        return self.clocks[kind]

    def patience_ends(self, now: int) -> int:
        ends = [seat.overdue_at for seat in self.seats if seat.is_waiting]
        self.patient_until = min(ends, default=NEVER)
        return min((at for at in ends if at > now), default=NEVER)

    def is_slow(self, seat: Seat, drain_ns: int) -> bool:
        """Work of others who are busy here takes longer than that to drain."""
        return any(other is not seat and other.is_busy and other.drain_ns > drain_ns for other in self.seats)

    def is_alone(self, seat: Seat) -> bool:
        return all(other is seat or other.life is Life.EMPTY for other in self.seats)

    def forget(self, seat: Seat) -> None:
        self.seats.remove(seat)
        if self.holder is seat:
            self.holder = None
        if seat in self.behind:
            self.behind.remove(seat)


@dataclass(slots=True, eq=False)
class Demander:
    """What is granted together: the seats of a container, or of containers of one gang of pods, each on another card.

    It gets all cards that it needs in one step or none, so no two can wait for each other. Containers of one gang on
    the same card can't have it together: they are in different demanders.
    """

    number: int
    """By age: the oldest is first where nothing else decides."""
    timing: Timing
    gang: Gang | None = None
    """Of pods."""
    seats: list[Seat] = field(default_factory=list[Seat])
    """By card id."""
    is_reopened: bool = False
    """This closing has been interrupted once."""

    longest_wait_ns: int = 0
    """After that it is next whatever it owes."""
    torn_turns: int = 0
    """How often it was served before its time because it was torn."""

    def __post_init__(self) -> None:
        self.set_longest_wait()

    def set_longest_wait(self) -> None:
        """A torn gang harms others until it runs on all its cards. It is served soon, and each time less soon."""
        timing = self.timing
        if self.is_torn():
            self.longest_wait_ns = min(timing.longest_wait_ns, timing.quantum_ns << min(self.torn_turns, 10))
        else:
            self.longest_wait_ns, self.torn_turns = timing.longest_wait_ns, 0
        for seat in self.seats:
            if seat.is_waiting:
                seat.begins_to_wait(seat.waiting_since)

    def is_torn(self) -> bool:
        """Its work runs on one card without an end, and may wait for what a thread at another's gate would launch."""
        return len(self.seats) > 1 and any(seat.still_running() for seat in self.seats)

    @property
    def cards(self) -> frozenset[Card]:
        return frozenset(seat.card for seat in self.seats)

    @property
    def keys(self) -> tuple[BudgetKey, ...]:
        """The containers whose seats these are."""
        return tuple(dict.fromkeys(seat.key for seat in self.seats))

    def is_there(self, key: BudgetKey) -> bool:
        """That container has a process on some card."""
        return any(seat.key == key and seat.life is not Life.EMPTY for seat in self.seats)

    def take_in(self, seats: Iterable[Seat]) -> None:
        self.seats = sorted([*self.seats, *seats], key=lambda seat: seat.card.id)
        for seat in self.seats:
            seat.demander = self
        self.set_longest_wait()

    def join(self, other: Demander) -> None:
        """From now on the other's seats are its own; what was used up stays so."""
        self.is_reopened |= other.is_reopened
        self.torn_turns = max(self.torn_turns, other.torn_turns)
        seats, other.seats = other.seats, []
        self.take_in(seats)

    def let_go(self, key: BudgetKey) -> list[Seat]:
        """Of that container it has no seat any more."""
        gone = [seat for seat in self.seats if seat.key == key]
        self.seats = [seat for seat in self.seats if seat.key != key]
        self.set_longest_wait()
        return gone

    def needs(self) -> tuple[Seat, ...]:
        """The seats that it would be granted together now; none where it wants nothing or is still closing."""
        seats = self.seats
        if len(seats) == 1:
            return (seats[0],) if seats[0].is_waiting else ()
        lives = [seat.life for seat in seats]
        if Life.WAITING not in lives or Life.CLOSING in lives:
            return ()
        # Also where no thread waits at this moment, and it was not idle when it last had the card.
        return tuple(seat for seat in seats if seat.is_waiting or (seat.has_gone and seat.card.policy.is_metering))

    def closing(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.is_closing]

    def is_drained(self) -> bool:
        """It is closing, and nothing is waited for any more."""
        closing = self.closing()
        return bool(closing) and not any([seat.undrained for seat in closing])  # noqa: C419 - a list is faster

    def open_seats(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.is_open and seat.card.policy.is_metering]
