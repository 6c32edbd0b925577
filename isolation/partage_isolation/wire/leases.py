"""On which cards time is metered, and what a process that joins there is told. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from partage_base.peers import is_stopped
from partage_isolation.audit.metrics import Counters
from partage_isolation.leases.arbiter import Arbiter
from partage_isolation.leases.card import Seat
from partage_isolation.leases.durations import Timing
from partage_isolation.leases.line import Hint, Shares, Write, pack
from partage_isolation.leases.node import Place
from partage_isolation.leases.policies import Gemini, by_name
from partage_isolation.leases.policies.policy import Policy
from partage_isolation.names import BudgetKey
from partage_isolation.store.specs import Spec
from partage_isolation.wire import packets as wire
from partage_isolation.wire.alarm import Alarm
from partage_isolation.wire.connection import LEASE_COSTS, Answer, Connection, Session
from partage_isolation.wire.packets import Lease, Loss, Packet, Result, What
from partage_isolation.wire.served import Registry
from partage_plugins.vocabulary.kinds import Promise
from partage_plugins.vocabulary.names import CardId

IDLE_US: Final = 500
"""Who has launched nothing for so long, and has no work under way, has no need of its lease."""
LOSS_AFTER_NS: Final = 1_000_000_000
"""A broker that is started again is back by then."""

_MEMORY: Final[tuple[Promise, ...]] = ("memory",)
_ALL: Final[tuple[Promise, ...]] = ("memory", "share", "limit")
_MOVABLE: Final[tuple[Promise, ...]] = ("movable",)


@dataclass(frozen=True)
class Terms:
    policy: str
    policies: Mapping[CardId, str] = field(default_factory=dict[CardId, str])
    """Of single cards."""
    timing: Timing = Timing()  # noqa: RUF009  it is frozen
    gemini: Gemini = Gemini()  # noqa: RUF009  as above
    """Where that is the policy."""
    loss: Loss = Loss.FREE

    def policy_of(self, card: CardId) -> Policy:
        return by_name(self.name_of(card), self.timing, self.gemini)

    def name_of(self, card: CardId) -> str:
        return self.policies.get(card, self.policy)

    def are_for(self, card: CardId) -> bool:
        return self.policy_of(card).is_metering

    def enforced_on(self, cards: Collection[CardId], *, moves: bool = False) -> tuple[Promise, ...]:
        """What is in force for a container that has these. Memory moves when a turn ends, and from one card."""
        is_metered = all(map(self.are_for, cards))
        is_movable = moves and is_metered and len(cards) == 1
        return (*(_ALL if is_metered else _MEMORY), *(_MOVABLE if is_movable else ()))

    @property
    def enforced(self) -> tuple[Promise, ...]:
        """What is in force on every card."""
        return _ALL if all(by_name(name).is_metering for name in (self.policy, *self.policies.values())) else _MEMORY

    @property
    def lease(self) -> Lease:
        """What who joins is told."""
        return Lease(idle_us=IDLE_US, loss=self.loss, loss_after=LOSS_AFTER_NS)


@dataclass(slots=True, eq=False)
class Member:
    session: Session
    number: int
    """Of the card, to its container."""
    key: BudgetKey
    card: CardId
    connections: frozenset[Connection]
    """Over which it joined."""


class Members:
    def __init__(self) -> None:
        self._of: dict[Session, dict[int, Member]] = {}
        """By who it is, and the card's number."""
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
        """Those of a process that joined over that connection."""
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


class Leases:
    def __init__(
        self,
        arbiter: Arbiter,
        *,
        registry: Registry,
        terms: Terms,
        counters: Counters,
        alarm: Callable[[Callable[[], None]], Alarm] = Alarm,
    ) -> None:
        self._arbiter, self._registry, self.terms, self._counters = arbiter, registry, terms, counters
        self._members = Members()
        self._alarm = alarm(self._rings)
        self._is_doing = False
        self.answers: Mapping[int, Answer] = {
            What.JOIN: self._join,
            What.WANT: self._want,
            What.DRAINED: self._drained,
            What.IDLE: self._idle,
        }
        """To all that processes may say of them."""

    def close(self) -> None:
        """Lines stay as they are: a lease runs out by itself, and processes see that the broker is gone."""
        self._alarm.close()

    # ---- Containers --------------------------------------------------------------------------------------------------

    def put(self, spec: Spec) -> None:
        """A container is served, or it and those of its budget have other shares and limits from now on."""
        metered = [card for card in spec.cards if self.terms.are_for(card.id)]
        for card in metered:
            share, limit = card.share_in_force, card.limit_in_force
            self._arbiter.put(spec.budget_key, card.id, share=share, limit=limit, gang=spec.gang)
        self._do()
        for card in metered:  # its page may be a new one
            self._write(self._arbiter.line(spec.budget_key, card.id))

    def drop(self, key: BudgetKey) -> None:
        """The last container is gone, and its connections are closed."""
        self._arbiter.drop(key)
        self._do()

    def shares(self) -> Mapping[Place, Shares]:
        return self._arbiter.shares(_now_ns())

    def hung_up(self, session: Session, connection: Connection) -> None:
        """A connection is over, and with it what joined over it."""
        for member in self._members.over(session, connection):
            self._members.remove(member)
            self._arbiter.left(member.key, member.card, member, _now_ns())
            self._do()

    # ---- For memory that moves ---------------------------------------------------------------------------------------

    def turn(self, key: BudgetKey, card: CardId, *, is_in: bool, share: int) -> None:
        """Whether a container's memory is on the card: else it has no turns. And as if it had what share."""
        self._arbiter.turn(key, card, is_in=is_in, share=share, now=_now_ns())
        self._do()

    def seat(self, key: BudgetKey, card: CardId) -> Seat | None:
        return self._arbiter.seat(key, card, _now_ns())

    # ---- What processes say ------------------------------------------------------------------------------------------

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
        lease = self.terms.lease._replace(epoch=self._arbiter.line(budget.key, card).epoch)
        return wire.answer(packet, Result.OK, wire.lease_body(lease))

    def _want(self, session: Session, packet: Packet) -> None:
        member = self._member(session, packet)
        if member is not None:
            self._arbiter.wanted(member.key, member.card, member, packet.lease.epoch, _now_ns())
            self._do()

    def _drained(self, session: Session, packet: Packet) -> None:
        member = self._member(session, packet)
        if member is not None:
            said, now = packet.lease, _now_ns()
            at, is_blocked = min(said.at, now), bool(said.is_blocked)
            self._arbiter.drained(member.key, member.card, member, said.epoch, at, is_blocked, now)
            self._do()

    def _idle(self, session: Session, packet: Packet) -> None:
        member = self._member(session, packet)
        if member is not None:
            self._arbiter.idle(member.key, member.card, member, packet.lease.epoch, _now_ns())
            self._do()

    def _member(self, session: Session, packet: Packet) -> Member | None:
        self._costs(session)
        member = self._members.find(session, packet.card)
        if member is None:
            self._counters.wrong += 1
        return member

    def _costs(self, session: Session) -> None:
        """More than other packets, for its whole container."""
        self._registry.served[session.process.key].bucket.spend(LEASE_COSTS - 1)

    # ---- What is to be done ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """At members that don't say whether their work is done: a stopped process can't."""
        for key, card, member in self._arbiter.silent():
            if isinstance(member, Member) and is_stopped(member.session.process.pid):
                self._arbiter.stopped(key, card, member, _now_ns())

    def _rings(self) -> None:
        self._arbiter.tick(_now_ns())
        self._do()
        self.look()

    def _do(self) -> None:
        """All of it. A connection may end while it is told: the call that is under way does what that sets off."""
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
        self._alarm.set(self._arbiter.due)

    def _write(self, act: Write) -> None:
        word, is_watched = pack(act.state, act.epoch, act.deadline_ns), bool(self._members.at(act.key, act.card))
        for served in self._registry.of(act.key):
            number = served.budget.card_number(act.card)
            if number is not None:
                served.page.write(number, word, wake=is_watched)

    def _hint(self, act: Hint) -> None:
        for member in tuple(self._members.at(act.key, act.card)):
            signals = member.session.signals
            if signals is not None:
                signals.hint(wire.line_hint(member.number, act.epoch))
