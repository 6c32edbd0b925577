"""Leases of compute time: what processes say of them goes to the arbiter, what it decides goes into lines.

A process leaves a card with a connection over which it joined there, for whatever reason: it died, executed another
program, hung up or came again, and then it joins anew. The arbiter knows time and containers; whose packet it is and
where a line lies is known here. Nothing waits for a client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from partage_isolation.broker import wire
from partage_isolation.broker.alarm import Alarm
from partage_isolation.broker.answering import Answer
from partage_isolation.broker.buckets import LEASE_COSTS
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.crews import Crews, Member
from partage_isolation.broker.processes import is_stopped
from partage_isolation.broker.served import Served, Session
from partage_isolation.broker.specs import Spec
from partage_isolation.broker.terms import Terms
from partage_isolation.broker.wire import Packet, Result, What
from partage_isolation.leasing.acts import Hint, Shares, Write
from partage_isolation.leasing.arbiter import Arbiter
from partage_isolation.leasing.node import Place
from partage_isolation.leasing.words import pack
from partage_plugins.vocabulary.names import CardId, ContainerKey

_now_ns: Final = time.monotonic_ns


class Leases:
    """Of one node."""

    def __init__(
        self,
        arbiter: Arbiter,
        *,
        served: Mapping[ContainerKey, Served],
        terms: Terms,
        counters: Counters,
        alarm: Callable[[Callable[[], None]], Alarm] = Alarm,
    ) -> None:
        self._arbiter, self._served, self._terms, self._counters = arbiter, served, terms, counters
        self._crews = Crews()
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
        """Lines stay as they are: a lease runs out by itself, and processes see that nobody is here."""
        self._alarm.close()

    # ---- Containers --------------------------------------------------------------------------------------------------

    def put(self, spec: Spec) -> None:
        """A container is served, or has other shares and limits from now on."""
        for card in spec.cards:
            if self._terms.are_for(card.id):
                self._arbiter.put(spec.key, card.id, share=card.share_in_force, limit=card.limit_in_force)
        self._do()

    def drop(self, key: ContainerKey) -> None:
        """The container is gone, and its connections are closed."""
        self._arbiter.drop(key)
        self._do()

    def shares(self) -> Mapping[Place, Shares]:
        """What each container wanted and got."""
        return self._arbiter.shares(_now_ns())

    # ---- What processes say ------------------------------------------------------------------------------------------

    def _join(self, session: Session, packet: Packet) -> bytes:
        key = session.process.key
        card = self._served[key].container.cards[packet.card].id
        self._costs(session)
        if not self._terms.are_for(card):
            return wire.answer(packet, Result.NO)
        if (session, packet.card) not in self._crews.members:
            self._begin(session, packet.card, card)
        lease = self._terms.lease._replace(epoch=self._arbiter.epoch(key, card))
        return wire.answer(packet, Result.OK, wire.lease_body(lease))

    def _begin(self, session: Session, number: int, card: CardId) -> None:
        member = self._crews.enter(session, number, card)
        member.leave = partial(self._left, member)
        for connection in member.connections:
            connection.at_end(member.leave)
        self._arbiter.joined(member.key, card, member, _now_ns())
        self._do()

    def _left(self, member: Member) -> None:
        self._crews.remove(member)
        for connection in member.connections:
            connection.not_at_end(member.leave)
        self._arbiter.left(member.key, member.card, member, _now_ns())
        self._do()

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
        member = self._crews.members.get((session, packet.card))
        if member is None:
            self._counters.wrong += 1
        return member

    def _costs(self, session: Session) -> None:
        """More than other packets, for its whole container."""
        self._served[session.process.key].bucket.spend(LEASE_COSTS - 1)

    # ---- What is to be done ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """At those who don't say whether their work is done: whoever does not run at all can't."""
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
                    self._act(act)
        finally:
            self._is_doing = False
        self._alarm.set(self._arbiter.due)

    def _act(self, act: Write | Hint) -> None:
        if isinstance(act, Write):
            self._write(act)
        else:
            self._hint(act)

    def _write(self, act: Write) -> None:
        served = self._served.get(act.key)
        number = served.container.card_number(act.card) if served else None
        if served is not None and number is not None:
            is_watched = bool(self._crews.of(act.key, act.card))
            served.page.write(number, pack(act.state, act.epoch, act.deadline_ns), wake=is_watched)

    def _hint(self, act: Hint) -> None:
        for member in tuple(self._crews.of(act.key, act.card)):
            signals = member.session.signals
            if signals is not None:
                signals.hint(wire.line_hint(member.number, act.epoch))
