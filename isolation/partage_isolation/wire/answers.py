"""Handlers of requests from known processes. None blocks: a request that must wait is deferred."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from uuid import UUID

from partage_isolation.ledger.budget import Budget, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.quota_accounting import Ask, Defer, Refused, believed
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import Answer, Served, Session
from partage_isolation.wire.deferred_requests import DeferredRequests, verdict_answer
from partage_isolation.wire.migration import Migration
from partage_isolation.wire.notifications import Notifications
from partage_isolation.wire.packets import Flag, Packet, Result, What
from partage_isolation.wire.served import Registry
from partage_isolation.wire.watch import Watch
from partage_plugins.api.names import CardId


class Answers:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        registry: Registry,
        hints: Notifications,
        watch: Watch,
        parking: DeferredRequests,
        moving: Migration,
    ) -> None:
        self._ledger, self._registry = ledger, registry
        self._hints, self._watch, self._parking = hints, watch, parking
        self._ask_lend = moving.guarded(ledger.accounting.lend)
        ask_context = moving.guarded(ledger.accounting.context, is_context=True)
        self.answers: Mapping[int, Answer] = {
            What.CARD: self._card,
            What.LEND: self._lend,
            What.RETURN: self._return,
            What.CONTEXT: partial(self._decided, ask_context),
            What.AMOUNTS: self._amounts,
            What.VIEW: self._view,
            What.PROCESSES_OF: self._processes,
            What.EXPORT: self._export,
            What.LEAVE: self._leave,
            What.OPEN: self._open,
            What.CLOSE: self._close,
        }

    # ---- Memory ------------------------------------------------------------------------------------------------------

    def _lend(self, session: Session, packet: Packet) -> bytes | None:
        if packet.has_grown:
            self._watch.measure(session.process, packet.card)
            if self._watch.once_measured(session.process, packet.card, partial(self._lend_now, session, packet)):
                return None
        return self._decided(self._ask_lend, session, packet)

    def _lend_now(self, session: Session, packet: Packet) -> None:
        if session.process.key in self._ledger.containers:
            self._say(session, self._decided(self._ask_lend, session, packet))

    def _decided(self, ask: Ask, session: Session, packet: Packet) -> bytes | None:
        process, card, amounts, again = session.process, packet.card, packet.amounts, packet.is_again
        verdict = ask(process, card, amounts, again=again)
        if isinstance(verdict, Defer | Refused):
            self._looks_at_all(session)
        if isinstance(verdict, Defer):
            self._parking.defer(session, packet, verdict, partial(ask, process, card, amounts, again=again))
            return None
        return verdict_answer(packet, verdict, amounts.returns)

    def _return(self, session: Session, packet: Packet) -> None:
        process, card = session.process, packet.card
        if self._ledger.accounting.returned(process, card, packet.amounts):
            self._watch.doubts(process, card)
        if self._hints.returned(process, card, packet.number):
            process.accounts[card].is_dry = packet.amounts.lent <= packet.amounts.used

    def _amounts(self, session: Session, packet: Packet) -> None:
        process, card, amounts = session.process, packet.card, packet.amounts
        claims = self._ledger.accounting.told(process, card, amounts)
        self._hints.told(process, packet.number, amounts)
        if packet.flags & (Flag.CONTEXT_MADE | Flag.CONTEXT_FAILED):
            made = not packet.flags & Flag.CONTEXT_FAILED
            self._ledger.accounting.context_ended(process, card, made=made)
            if made:
                self._watch.measure(process, card)
        if packet.has_grown:
            self._watch.measure(process, card)
        if claims:
            self._watch.doubts(process, card)

    # ---- Shared memory -----------------------------------------------------------------------------------------------

    def _export(self, session: Session, packet: Packet) -> bytes:
        anybodys = bool(packet.flags & Flag.ANYBODY)
        is_noted = self._ledger.sharing.exported(session.process, packet.card, packet.shared, anybodys=anybodys)
        return wire.answer(packet, Result.OK if is_noted else Result.FULL)

    def _leave(self, session: Session, packet: Packet) -> bytes:
        lent = self._ledger.sharing.left(session.process, packet.card, packet.shared)
        return wire.lent_answer(packet, Result.OK, lent)

    def _open(self, session: Session, packet: Packet) -> bytes:
        size = self._ledger.sharing.opened(session.process, packet.card, packet.shared)
        if size is None:
            return wire.answer(packet, Result.NO)
        return wire.answer(packet, Result.OK, wire.shared_body(packet.shared._replace(size=size)))

    def _close(self, session: Session, packet: Packet) -> bytes:
        self._ledger.sharing.closed(session.process, packet.shared)
        return wire.answer(packet, Result.OK)

    # ---- Views -------------------------------------------------------------------------------------------------------

    def _card(self, session: Session, packet: Packet) -> bytes:
        card = self._ledger.containers[session.process.key].cards[packet.card]
        body = wire.card_body(
            uuid_of(card.id),
            card.memory_in_force,
            share=card.share_in_force,
            limit=card.limit_in_force,
            is_mig=is_mig(card.id),
        )
        return wire.answer(packet, Result.OK, body)

    def _view(self, session: Session, packet: Packet) -> bytes | None:
        """Answer with usage. To be correct after a new context or loaded code, a sample is taken first."""
        self._looks_at_all(session)
        if packet.has_grown:
            self._watch.measure(session.process, packet.card)
        if self._watch.once_measured(session.process, packet.card, partial(self._viewed, session, packet)):
            return None
        return view_answer(packet, self._ledger.containers[session.process.key])

    def _viewed(self, session: Session, packet: Packet) -> None:
        budget = self._ledger.containers.get(session.process.key)
        if budget is not None:
            self._say(session, view_answer(packet, budget))

    def _say(self, session: Session, answer: bytes | None) -> None:
        if session.calls is not None and answer is not None:
            session.calls.send(answer)

    def _looks_at_all(self, session: Session) -> None:
        self._ledger.entries.looked_at(len(self._ledger.containers[session.process.key].processes))

    def _processes(self, session: Session, packet: Packet) -> bytes:
        """At most three of the processes on the card, with pids of the requester's pid namespace."""
        self._looks_at_all(session)
        found = sorted(_seen_from(session, self._registry.served[session.process.key], packet.card))
        first = min(packet.first_process, len(found))
        return wire.answer(packet, Result.OK, wire.processes_body(found[first:]), flags=len(found))


def uuid_of(card: CardId) -> bytes:
    """The bytes of `GPU-…` or `MIG-…`; for any other id, a value that no card has."""
    try:
        return UUID(card.partition("-")[2]).bytes
    except ValueError:
        return hashlib.sha256(card.encode()).digest()[:16]


def is_mig(card: CardId) -> bool:
    return card.startswith("MIG-")


def view_answer(packet: Packet, budget: Budget) -> bytes:
    limit, charged = budget.cards[packet.card].memory_in_force, believed(budget, packet.card)
    return wire.answer(packet, Result.OK, wire.view_body(limit, charged, budget.fixed(packet.card)))


def _seen_from(asker: Session, served: Served, card: int) -> Iterator[tuple[int, int]]:
    for process, account in served.budget.accounts(card):
        session = served.sessions.get(process.id)
        if process.state is State.DEAD or session is None or not account.total:
            continue
        pid = pid_for(asker, session)
        if pid is not None:
            yield pid, min(account.used, account.lent) + account.unproved + account.fixed


def pid_for(asker: Session, other: Session) -> int | None:
    """The pid of one process in the other's namespace; None where that namespace does not contain it."""
    level = len(asker.pids) - 1
    if level < 0 or len(other.pids) <= level:
        return None
    if len(other.pids) == len(asker.pids) and other.namespace != asker.namespace:
        return None
    return other.pids[level]
