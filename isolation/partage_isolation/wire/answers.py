"""What a known process asks, and the answer as bytes. No answer waits: a question that must wait is parked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.loans import Ask, Park, Refused
from partage_isolation.wire import packets as wire
from partage_isolation.wire.hints import Hints
from partage_isolation.wire.packets import Flag, Packet, Result, What
from partage_isolation.wire.parked import ParkedQuestions
from partage_isolation.wire.served import Registry, Session
from partage_isolation.wire.views import card_answer, processes_answer, verdict_answer, view_answer
from partage_isolation.wire.watch import Watch


def _export(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    anybodys = bool(packet.flags & Flag.ANYBODY)
    is_noted = ledger.sharing.exported(session.process, packet.card, packet.shared, anybodys=anybodys)
    return wire.answer(packet, Result.OK if is_noted else Result.FULL)


def _leave(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    lent = ledger.sharing.left(session.process, packet.card, packet.shared)
    return wire.lent_answer(packet, Result.OK, lent)


def _open(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    size = ledger.sharing.opened(session.process, packet.card, packet.shared)
    if size is None:
        return wire.answer(packet, Result.NO)
    return wire.answer(packet, Result.OK, wire.shared_body(packet.shared._replace(size=size)))


def _close(ledger: Ledger, session: Session, packet: Packet) -> bytes:
    ledger.sharing.closed(session.process, packet.shared)
    return wire.answer(packet, Result.OK)


SHARING: Final[Mapping[int, Callable[[Ledger, Session, Packet], bytes]]] = {
    What.EXPORT: _export,
    What.LEAVE: _leave,
    What.OPEN: _open,
    What.CLOSE: _close,
}
"""What answers each of them."""


Answer = Callable[[Session, Packet], bytes | None]
"""To one kind of question; None where nothing is said, or not yet."""


class Guard(Protocol):
    """A question for memory that is asked only where the card has room for it."""

    def __call__(self, ask: Ask, *, is_context: bool = ...) -> Ask: ...


class Answering:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        registry: Registry,
        hints: Hints,
        watch: Watch,
        parking: ParkedQuestions,
        guarded: Guard,
        others: Mapping[int, Answer],
    ) -> None:
        """`guarded`: questions for memory, asked where the card has room. `others`: answers to all else."""
        self._ledger, self._registry = ledger, registry
        self._hints, self._watch, self._parking = hints, watch, parking
        self._ask_lend = guarded(ledger.lending.lend)
        self._ask_context = guarded(ledger.lending.context, is_context=True)
        self.answers: Mapping[int, Answer] = {
            What.CARD: self._card,
            What.LEND: self._lend,
            What.RETURN: self._return,
            What.CONTEXT: self._context,
            What.AMOUNTS: self._amounts,
            What.VIEW: self._view,
            What.PROCESSES_OF: self._processes,
            **{what: partial(answer, ledger) for what, answer in SHARING.items()},
            **others,
        }

    def knows_card(self, session: Session, card: int) -> bool:
        budget = self._ledger.containers.get(session.process.key)
        return budget is not None and card < len(budget.cards)

    # ---- To take and to give back ------------------------------------------------------------------------------------

    def _lend(self, session: Session, packet: Packet) -> bytes | None:
        if packet.has_grown:
            self._watch.measure(session.process, packet.card)
            if self._watch.once_measured(session.process, packet.card, partial(self._lend_now, session, packet)):
                return None
        return self._decided(session, packet, self._ask_lend)

    def _lend_now(self, session: Session, packet: Packet) -> None:
        if session.process.key in self._ledger.containers:
            self._say(session, self._decided(session, packet, self._ask_lend))

    def _context(self, session: Session, packet: Packet) -> bytes | None:
        return self._decided(session, packet, self._ask_context)

    def _decided(self, session: Session, packet: Packet, ask: Ask) -> bytes | None:
        process, card, amounts, again = session.process, packet.card, packet.amounts, packet.is_again
        verdict = ask(process, card, amounts, again=again)
        if isinstance(verdict, Park | Refused):
            self._looks_at_all(session)
        if isinstance(verdict, Park):
            self._parking.park(session, packet, verdict, partial(ask, process, card, amounts, again=again))
            return None
        return verdict_answer(packet, verdict, amounts.returns)

    def _return(self, session: Session, packet: Packet) -> None:
        process, card = session.process, packet.card
        if self._ledger.lending.returned(process, card, packet.amounts):
            self._watch.doubts(process, card)
        if self._hints.returned(process, card, packet.number):
            process.accounts[card].is_dry = packet.amounts.lent <= packet.amounts.used

    def _amounts(self, session: Session, packet: Packet) -> None:
        process, card, amounts = session.process, packet.card, packet.amounts
        claims = self._ledger.lending.told(process, card, amounts)
        self._hints.told(process, packet.number, amounts)
        if packet.flags & (Flag.CONTEXT_MADE | Flag.CONTEXT_FAILED):
            made = not packet.flags & Flag.CONTEXT_FAILED
            self._ledger.lending.context_ended(process, card, made=made)
            if made:
                self._watch.measure(process, card)
        if packet.has_grown:
            self._watch.measure(process, card)
        if claims:
            self._watch.doubts(process, card)

    # ---- To see ------------------------------------------------------------------------------------------------------

    def _card(self, session: Session, packet: Packet) -> bytes:
        return card_answer(packet, self._ledger.containers[session.process.key].cards[packet.card])

    def _view(self, session: Session, packet: Packet) -> bytes | None:
        """After a context was made, or code was loaded, that is first measured: what is shown is right."""
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
        self._looks_at_all(session)
        return processes_answer(packet, self._registry.served[session.process.key], session)
