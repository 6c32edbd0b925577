"""Time slices of processes: which cards are metered, which processes joined, and the packets about it. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from partage_base.peers import is_stopped
from partage_isolation.metrics import Counters
from partage_isolation.names import BudgetKey
from partage_isolation.store.specs import Spec
from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.card import RunQueueEntry
from partage_isolation.timeslices.domains import Place
from partage_isolation.timeslices.durations import Timing
from partage_isolation.timeslices.line import Notify, Shares, Write, pack
from partage_isolation.timeslices.policies import Gemini, by_name
from partage_isolation.timeslices.policies.policy import Policy
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import LEASE_COSTS, Answer, Connection, Session
from partage_isolation.wire.packets import Loss, Packet, Result, TimeSlice, What
from partage_isolation.wire.served import Registry
from partage_isolation.wire.timer import Timer
from partage_plugins.api.kinds import Promise
from partage_plugins.api.names import CardId

IDLE_US: Final = 500
"""A process that has been idle this long, with nothing in flight, gives its time slice back."""
LOSS_AFTER_NS: Final = 1_000_000_000
"""A restarted broker is back within this time."""

_MEMORY: Final[tuple[Promise, ...]] = ("memory",)
_ALL: Final[tuple[Promise, ...]] = ("memory", "share", "limit")
_MOVABLE: Final[tuple[Promise, ...]] = ("movable",)


@dataclass(frozen=True)
class Terms:
    policy: str
    policies: Mapping[CardId, str] = field(default_factory=dict[CardId, str])
    """Policies of single cards."""
    timing: Timing = Timing()  # noqa: RUF009  it is frozen
    gemini: Gemini = Gemini()  # noqa: RUF009  as above
    """Parameters where the policy is gemini."""
    loss: Loss = Loss.FREE

    def policy_of(self, card: CardId) -> Policy:
        return by_name(self.name_of(card), self.timing, self.gemini)

    def name_of(self, card: CardId) -> str:
        return self.policies.get(card, self.policy)

    def are_for(self, card: CardId) -> bool:
        return self.policy_of(card).is_metering

    def enforced_on(self, cards: Collection[CardId], *, moves: bool = False) -> tuple[Promise, ...]:
        """Guarantees in force for a container with these cards. Only memory of a single, metered card moves."""
        is_metered = all(map(self.are_for, cards))
        is_movable = moves and is_metered and len(cards) == 1
        return (*(_ALL if is_metered else _MEMORY), *(_MOVABLE if is_movable else ()))

    @property
    def enforced(self) -> tuple[Promise, ...]:
        """Guarantees in force on every card."""
        return _ALL if all(by_name(name).is_metering for name in (self.policy, *self.policies.values())) else _MEMORY

    @property
    def timeslice(self) -> TimeSlice:
        """The parameters that a joining process receives."""
        return TimeSlice(idle_us=IDLE_US, loss=self.loss, loss_after=LOSS_AFTER_NS)


@dataclass(slots=True, eq=False)
class Member:
    session: Session
    number: int
    """The card's number in its container."""
    key: BudgetKey
    card: CardId
    connections: frozenset[Connection]
    """The connections over which it joined."""


class Members:
    def __init__(self) -> None:
        self._of: dict[Session, dict[int, Member]] = {}
        """By session and card number."""
        self._at: dict[Place, list[Member]] = {}

    def enter(self, session: Session, number: int, place: Place) -> Member:
        connections = frozenset(each for each in (session.calls, session.signals) if each is not None)
        member = Member(session, number, *place, connections)
        self._of.setdefault(session, {})[number] = member
        self._at.setdefault(place, []).append(member)
        return member

    def find(self, session: Session, number: int) -> Member | None:
        return self._of.get(session, {}).get(number)

    def over(self, session: Session, connection: Connection) -> Sequence[Member]:
        """The memberships of a process that joined over that connection."""
        return [each for each in self._of.get(session, {}).values() if connection in each.connections]

    def remove(self, member: Member) -> None:
        of, at = self._of[member.session], self._at[member.key, member.card]
        del of[member.number]
        at.remove(member)
        if not of:
            del self._of[member.session]
        if not at:
            del self._at[member.key, member.card]

    def at(self, key: BudgetKey, card: CardId) -> Sequence[Member]:
        return self._at.get((key, card), ())


_now_ns: Final = time.monotonic_ns


class TimeSlices:
    def __init__(
        self,
        arbiter: Arbiter,
        *,
        registry: Registry,
        terms: Terms,
        counters: Counters,
        timer: Callable[[Callable[[], None]], Timer] = Timer,
    ) -> None:
        self._arbiter, self._registry, self.terms, self._counters = arbiter, registry, terms, counters
        self._members = Members()
        self._timer = timer(self._rings)
        self._is_doing = False
        self.answers: Mapping[int, Answer] = {
            What.JOIN: self._join,
            What.WANT: self._want,
            What.DRAINED: self._drained,
            What.IDLE: self._idle,
        }
        """Handlers of packets about time slices."""

    def close(self) -> None:
        """Lines stay as they are: a time slice expires by itself, and processes see that the broker is gone."""
        self._timer.close()

    # ---- Containers --------------------------------------------------------------------------------------------------

    def put(self, spec: Spec) -> None:
        """Set shares and limits of a container, and of all that share its budget."""
        metered = [card for card in spec.cards if self.terms.are_for(card.id)]
        for card in metered:
            share, limit = card.share_in_force, card.limit_in_force
            self._arbiter.put(spec.budget_key, card.id, share=share, limit=limit, gang=spec.gang)
        self._do()
        for card in metered:  # its page may be new
            self._write(self._arbiter.line(spec.budget_key, card.id))

    def drop(self, key: BudgetKey) -> None:
        """The last container is gone, and its connections are closed."""
        self._arbiter.drop(key)
        self._do()

    def shares(self) -> Mapping[Place, Shares]:
        return self._arbiter.shares(_now_ns())

    def hung_up(self, session: Session, connection: Connection) -> None:
        """Remove what joined over a connection that has closed."""
        for member in self._members.over(session, connection):
            self._members.remove(member)
            self._arbiter.left(member.key, member.card, member, _now_ns())
            self._do()

    # ---- Movable memory ----------------------------------------------------------------------------------------------

    def turn(self, key: BudgetKey, card: CardId, *, is_in: bool, share: int) -> None:
        """Set whether its memory is on the card, without which it gets no time slices, and its effective share."""
        self._arbiter.turn(key, card, is_in=is_in, share=share, now=_now_ns())
        self._do()

    def entry(self, key: BudgetKey, card: CardId) -> RunQueueEntry | None:
        return self._arbiter.entry(key, card, _now_ns())

    # ---- Packets from processes --------------------------------------------------------------------------------------

    def _join(self, session: Session, packet: Packet) -> bytes:
        budget = self._registry.served[session.process.key].budget
        card = budget.cards[packet.card].id
        self._costs(session)
        if not self.terms.are_for(card):
            return wire.answer(packet, Result.NO)
        if self._members.find(session, packet.card) is None:
            member = self._members.enter(session, packet.card, (budget.key, card))
            self._arbiter.joined(budget.key, card, member, _now_ns())
            self._do()
        timeslice = self.terms.timeslice._replace(epoch=self._arbiter.line(budget.key, card).epoch)
        return wire.answer(packet, Result.OK, wire.lease_body(timeslice))

    def _want(self, session: Session, packet: Packet) -> None:
        member = self._member(session, packet)
        if member is not None:
            self._arbiter.wanted(member.key, member.card, member, packet.timeslice.epoch, _now_ns())
            self._do()

    def _drained(self, session: Session, packet: Packet) -> None:
        member = self._member(session, packet)
        if member is not None:
            said, now = packet.timeslice, _now_ns()
            at, is_blocked = min(said.at, now), bool(said.is_blocked)
            self._arbiter.drained(member.key, member.card, member, said.epoch, at, is_blocked, now)
            self._do()

    def _idle(self, session: Session, packet: Packet) -> None:
        member = self._member(session, packet)
        if member is not None:
            self._arbiter.idle(member.key, member.card, member, packet.timeslice.epoch, _now_ns())
            self._do()

    def _member(self, session: Session, packet: Packet) -> Member | None:
        self._costs(session)
        member = self._members.find(session, packet.card)
        if member is None:
            self._counters.wrong += 1
        return member

    def _costs(self, session: Session) -> None:
        """Charge more than for other packets, to the whole container."""
        self._registry.served[session.process.key].bucket.spend(LEASE_COSTS - 1)

    # ---- Actions -----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Find silent members that are stopped, and so can't report."""
        for key, card, member in self._arbiter.silent():
            if isinstance(member, Member) and is_stopped(member.session.process.pid):
                self._arbiter.stopped(key, card, member, _now_ns())

    def _rings(self) -> None:
        self._arbiter.tick(_now_ns())
        self._do()
        self.look()

    def _do(self) -> None:
        """Perform all actions. A connection may close meanwhile: the outer call handles the resulting actions."""
        if self._is_doing:
            return
        self._is_doing = True
        try:
            while acts := self._arbiter.take():
                for act in acts:
                    if isinstance(act, Write):
                        self._write(act)
                    else:
                        self._hint(act)
        finally:
            self._is_doing = False
        self._timer.set(self._arbiter.due)

    def _write(self, act: Write) -> None:
        word, is_watched = pack(act.state, act.epoch, act.deadline_ns), bool(self._members.at(act.key, act.card))
        for served in self._registry.of(act.key):
            number = served.budget.card_number(act.card)
            if number is not None:
                served.page.write(number, word, wake=is_watched)

    def _hint(self, act: Notify) -> None:
        for member in tuple(self._members.at(act.key, act.card)):
            signals = member.session.signals
            if signals is not None:
                signals.hint(wire.line_hint(member.number, act.epoch))
