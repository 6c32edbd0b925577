"""Conversations with the processes of containers: what each packet asks, and what it is answered.

Who a process is, is the socket by which it came, checked against the kernel's word for its pid, when that began, and
its control group. It is never what a packet says; a token is good only from the process that it was given to. No
answer here waits for anything: a question that must wait is parked.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from partage_isolation.broker import wire
from partage_isolation.broker.buckets import HELLO_COSTS
from partage_isolation.broker.containers import Process
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.hints import Hints
from partage_isolation.broker.identities import Identities
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.lives import MOST_PROCESSES
from partage_isolation.broker.processes import NoProcess, Peer, namespace_of, peer_of, pids_of
from partage_isolation.broker.served import Served, Session
from partage_isolation.broker.sockets import Connection
from partage_isolation.broker.states import State
from partage_isolation.broker.verdicts import Lent, NoRoom, Park, Patience, Verdict
from partage_isolation.broker.viewing import card_answer, processes_answer, view_answer
from partage_isolation.broker.wire import Flag, Packet, Result, What

Decide = Callable[[Patience], Verdict]
_HELLO_WITHIN_S: Final = 5.0
_MOST_STRANGERS: Final = 2 * MOST_PROCESSES


class Watcher(Protocol):
    """Who looks after what a packet sets off."""

    def watch(self, process: Process, peer: Peer) -> None:
        """A process is there; `peer.pidfd` is the watcher's now."""
        ...

    def park(self, session: Session, packet: Packet, verdict: Park, decide: Decide) -> None:
        """A question that waits; it is answered by `Sessions.decided`."""
        ...

    def doubts(self, process: Process, card: int) -> None:
        """A sample of that card is worth taking now: something is said to be free, or claimed."""
        ...

    def context_made(self, process: Process, card: int) -> None:
        """A sample will show what it takes."""
        ...

    def once_measured(self, process: Process, card: int, then: Callable[[], None]) -> bool:
        """Calls that when such a sample was taken; False where none is under way."""
        ...


class Sessions:
    """Of all containers."""

    def __init__(
        self, ledger: Ledger, *, identities: Identities, hints: Hints, counters: Counters, watcher: Watcher
    ) -> None:
        self._ledger, self._identities, self._hints = ledger, identities, hints
        self._counters, self._watcher = counters, watcher
        self._questions: Mapping[int, Callable[[Session, Packet], bytes | None]] = {
            What.CARD: self._card,
            What.LEND: self._lend,
            What.RETURN: self._return,
            What.CONTEXT: self._context,
            What.AMOUNTS: self._amounts,
            What.VIEW: self._view,
            What.PROCESSES_OF: self._processes,
            What.EXPORT: self._export,
            What.LEAVE: self._leave,
            What.OPEN: self._open,
            What.CLOSE: self._close,
        }

    # ---- Connections -------------------------------------------------------------------------------------------------

    def connected(self, served: Served, accepted: socket.socket) -> None:
        """Somebody of the container is there; who, is asked when he says HELLO."""
        if len(served.strangers) >= _MOST_STRANGERS:
            self._counters.turned_away += 1
            accepted.close()
            return
        talk = _Talk(self, served)
        talk.connection = Connection(
            accepted, on_packet=talk.packet, on_end=talk.ended, shared=served.bucket, counters=self._counters
        )
        served.strangers.add(talk.connection)
        talk.patience = asyncio.get_running_loop().call_later(_HELLO_WITHIN_S, talk.connection.close)

    def decided(self, session: Session, packet: Packet, verdict: Verdict) -> None:
        """The answer to a question that was parked."""
        if session.calls is not None:
            session.calls.send(_verdict(packet, verdict))

    def said(self, talk: _Talk, data: bytes) -> None:
        """One packet of a connection."""
        packet = wire.read(data)
        if packet is None:
            self._counters.wrong += 1
            talk.connection.close()  # what it speaks is not our protocol
            return
        if packet.version != wire.VERSION:
            self._wrong(talk, packet)
            return
        session = talk.session
        if packet.what == What.HELLO:
            self._hello(talk, packet)
        elif session is None:
            self._wrong(talk, packet)
        else:
            self._asked(talk, session, packet)

    def _asked(self, talk: _Talk, session: Session, packet: Packet) -> None:
        question = self._questions.get(packet.what)
        if question is None or session.process.state is State.DEAD:
            self._wrong(talk, packet)
            return
        if not self._knows_card(session.process, packet.card):
            talk.connection.send(wire.answer(packet, Result.UNKNOWN))
            return
        answer = question(session, packet)
        if answer is not None:
            talk.connection.send(answer)

    def _knows_card(self, process: Process, card: int) -> bool:
        container = self._ledger.containers.get(process.key)
        return container is not None and card < len(container.cards)

    def _wrong(self, talk: _Talk, packet: Packet) -> None:
        self._counters.wrong += 1
        talk.connection.send(wire.answer(packet, Result.WRONG))

    # ---- HELLO -------------------------------------------------------------------------------------------------------

    def _hello(self, talk: _Talk, packet: Packet) -> None:
        if talk.session is not None:
            self._wrong(talk, packet)
            return
        talk.served.bucket.take(time.monotonic(), HELLO_COSTS)
        try:
            peer = peer_of(talk.connection.socket)
        except NoProcess:
            talk.connection.close()
            return
        if not self._identities.may_be(talk.served.spec.key, peer.pid):
            os.close(peer.pidfd)
            self._hello_answered(talk, packet, Result.UNKNOWN, "of another container")
            return
        (self._hello_signals if packet.flags & Flag.SIGNALS else self._hello_calls)(talk, packet, peer)

    def _hello_calls(self, talk: _Talk, packet: Packet, peer: Peer) -> None:
        served, who = talk.served, (peer.pid, peer.start)
        if packet.token == wire.NO_TOKEN:
            process = self._ledger.lives.begin(served.container, who, os.urandom(wire.TOKEN_BYTES))
            outcome, why = Result.FULL, "too many processes"
        else:
            process = self._ledger.lives.resume(served.container, who, packet.token)
            outcome, why = Result.UNKNOWN, "of no known token"
        if process is None:
            os.close(peer.pidfd)
            self._hello_answered(talk, packet, outcome, why)
            return
        session = self._session(served, process, peer)
        if packet.token == wire.NO_TOKEN:
            session.close()  # of the program that ran in the process before
            for card in process.accounts:
                self._watcher.doubts(process, card)
        talk.take(session, is_signals=False)
        self._hello_answered(talk, packet, Result.OK, "taken", process, page=served.page.descriptor)

    def _hello_signals(self, talk: _Talk, packet: Packet, peer: Peer) -> None:
        process = talk.served.container.by_token.get(packet.token)
        if process is None or process.id != (peer.pid, peer.start) or process.state in (State.DEAD, State.FOUND):
            os.close(peer.pidfd)
            self._hello_answered(talk, packet, Result.UNKNOWN, "of no known token")
            return
        session = self._session(talk.served, process, peer)
        process.is_silent = False
        talk.take(session, is_signals=True)
        self._hello_answered(talk, packet, Result.OK, "taken", process)

    def _session(self, served: Served, process: Process, peer: Peer) -> Session:
        self._watcher.watch(process, peer)
        session = served.sessions.get(process.id)
        if session is None:
            session = Session(process, pids=pids_of(peer.pid), namespace=namespace_of(peer.pid))
            served.sessions[process.id] = session
        return session

    def _hello_answered(  # noqa: PLR0913  an answer has its parts
        self,
        talk: _Talk,
        packet: Packet,
        result: Result,
        outcome: str,
        process: Process | None = None,
        *,
        page: int | None = None,
    ) -> None:
        self._counters.hellos[outcome] += 1
        cards = len(talk.served.container.cards)
        body = wire.hello_body(process.token, cards) if process else b""
        talk.connection.send(wire.answer(packet, result, body), page)

    # ---- Questions ---------------------------------------------------------------------------------------------------

    def _card(self, session: Session, packet: Packet) -> bytes:
        book = self._ledger.containers[session.process.key].cards[packet.card]
        return card_answer(packet, book)

    def _lend(self, session: Session, packet: Packet) -> bytes | None:
        ask = partial(self._ledger.lending.lend, session.process, packet.card, packet.amounts, again=packet.is_again)
        return self._answered(session, packet, ask)

    def _context(self, session: Session, packet: Packet) -> bytes | None:
        ask = partial(self._ledger.lending.context, session.process, packet.card, packet.amounts, again=packet.is_again)
        return self._answered(session, packet, ask)

    def _answered(self, session: Session, packet: Packet, decide: Decide) -> bytes | None:
        verdict = decide(Patience.ALL)
        if isinstance(verdict, Park):
            self._watcher.park(session, packet, verdict, decide)
            return None
        return _verdict(packet, verdict)

    def _return(self, session: Session, packet: Packet) -> None:
        process, card = session.process, packet.card
        if self._ledger.lending.returned(process, card, packet.amounts):
            self._watcher.doubts(process, card)
        self._hints.returned(process, card)

    def _amounts(self, session: Session, packet: Packet) -> None:
        process, card, amounts = session.process, packet.card, packet.amounts
        claims = self._ledger.lending.told(process, card, amounts)
        self._hints.told(process, packet.number, amounts)
        if packet.flags & (Flag.CONTEXT_MADE | Flag.CONTEXT_FAILED):
            made = not packet.flags & Flag.CONTEXT_FAILED
            self._ledger.lending.context_ended(process, card, made=made)
            if made:
                self._watcher.context_made(process, card)
        if claims:
            self._watcher.doubts(process, card)

    def _view(self, session: Session, packet: Packet) -> bytes | None:
        """After a context was made its size is first measured: what is shown is right from the beginning."""
        if self._watcher.once_measured(session.process, packet.card, partial(self._viewed, session, packet)):
            return None
        return view_answer(packet, self._ledger.containers[session.process.key])

    def _viewed(self, session: Session, packet: Packet) -> None:
        container = self._ledger.containers.get(session.process.key)
        if session.calls is not None and container is not None:
            session.calls.send(view_answer(packet, container))

    def _processes(self, session: Session, packet: Packet) -> bytes:
        served = self._identities.served[session.process.key]
        return processes_answer(packet, served, session)

    # ---- Memory that several hold ------------------------------------------------------------------------------------

    def _export(self, session: Session, packet: Packet) -> bytes:
        anybodys = bool(packet.flags & Flag.ANYBODY)
        is_noted = self._ledger.sharing.exported(session.process, packet.card, packet.shared, anybodys=anybodys)
        return wire.answer(packet, Result.OK if is_noted else Result.FULL)

    def _leave(self, session: Session, packet: Packet) -> bytes:
        lent = self._ledger.sharing.left(session.process, packet.card, packet.shared)
        return wire.answer(packet, Result.OK, wire.amounts_body(wire.Amounts(0, lent)))

    def _open(self, session: Session, packet: Packet) -> bytes:
        size = self._ledger.sharing.opened(session.process, packet.card, packet.shared)
        if size is None:
            return wire.answer(packet, Result.NO)
        return wire.answer(packet, Result.OK, wire.shared_body(packet.shared._replace(size=size)))

    def _close(self, session: Session, packet: Packet) -> bytes:
        self._ledger.sharing.closed(session.process, packet.shared)
        return wire.answer(packet, Result.OK)

    # ---- Ends --------------------------------------------------------------------------------------------------------

    def ended(self, talk: _Talk) -> None:
        """A connection is over."""
        talk.served.strangers.discard(talk.connection)
        session = talk.session
        if session is None:
            return
        if session.calls is talk.connection:
            session.calls = None
            self._ledger.lives.hung_up(session.process)
        elif session.signals is talk.connection:
            session.signals = None
        if session.process.state is State.GONE:
            talk.served.sessions.pop(session.process.id, None)


class _Talk:
    """One connection, and whose it is."""

    __slots__ = ("_sessions", "connection", "patience", "served", "session")

    def __init__(self, sessions: Sessions, served: Served) -> None:
        self._sessions, self.served = sessions, served
        self.session: Session | None = None
        self.patience: asyncio.TimerHandle | None = None
        self.connection: Connection

    def packet(self, data: bytes) -> None:
        """Something came."""
        self._sessions.said(self, data)

    def take(self, session: Session, *, is_signals: bool) -> None:
        """It is of that process from now on; an earlier one of the same kind is over."""
        before = session.signals if is_signals else session.calls
        if is_signals:
            session.signals = self.connection
        else:
            session.calls = self.connection
        self.session = session
        self.served.strangers.discard(self.connection)
        self._be_patient()
        if before is not None:
            before.close()

    def ended(self) -> None:
        """It is over."""
        self._be_patient()
        self._sessions.ended(self)

    def _be_patient(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None


def _verdict(packet: Packet, verdict: Verdict) -> bytes:
    if isinstance(verdict, NoRoom):
        return wire.answer(packet, Result.FULL)
    result = Result.OK if isinstance(verdict, Lent) else Result.NO
    return wire.answer(packet, result, wire.amounts_body(wire.Amounts(0, verdict.lent)))
