"""Conversations with the processes of containers: HELLO, then questions.

The socket of a connection says which container it is of. The kernel says its pid, start and control group. A packet is
never believed about that, and a token is good only for the process that was given it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from partage_base.peers import NoProcess, Peer, namespace_of, peer_of, pids_of
from partage_isolation.audit.metrics import Counters
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import MOST_PROCESSES, Ledger
from partage_isolation.ledger.pieces import ProcessId
from partage_isolation.wire import packets as wire
from partage_isolation.wire.answers import Answer, Answering, Guard
from partage_isolation.wire.connection import HELLO_COSTS
from partage_isolation.wire.hints import Hints
from partage_isolation.wire.packets import Flag, Packet, Result, What
from partage_isolation.wire.parked import ParkedQuestions
from partage_isolation.wire.served import Registry, Served, Session, Talk
from partage_isolation.wire.watch import Watch
from partage_plugins.vocabulary.names import ContainerKey

_TAKEN: Final = "taken"


@dataclass(frozen=True)
class _Unwelcome:
    result: Result
    why: str


_OF_ANOTHER: Final = _Unwelcome(Result.UNKNOWN, "of another container")
_UNKNOWN: Final = _Unwelcome(Result.UNKNOWN, "of no known token")
_TOO_MANY: Final = _Unwelcome(Result.FULL, "too many processes")


class Arriving:
    def __init__(self, ledger: Ledger, *, registry: Registry, counters: Counters, watch: Watch) -> None:
        self._ledger, self._registry = ledger, registry
        self._counters, self._watch = counters, watch

    def hello(self, talk: Talk, packet: Packet) -> None:
        """A connection says that it is a process of the container whose socket it used."""
        talk.served.bucket.take(time.monotonic(), HELLO_COSTS)
        try:
            peer = peer_of(talk.connection.socket)
        except NoProcess:
            talk.connection.close()
            return
        who = self._who(talk.served, packet, peer)
        if isinstance(who, _Unwelcome):
            os.close(peer.pidfd)
            self._counters.hellos[who.why] += 1
            talk.connection.send(wire.answer(packet, who.result))
        else:
            self._take(talk, packet, self._session(talk.served, who, peer))
            self._welcome(talk, packet, who)

    def _who(self, served: Served, packet: Packet, peer: Peer) -> Process | _Unwelcome:
        if not self._registry.may_be(served, peer.pid):
            return _OF_ANOTHER
        lives, key = self._ledger.lives, served.spec.key
        who, token = (peer.pid, peer.start), packet.token
        if packet.flags & Flag.SIGNALS:  # only for a process that has a connection for questions, or had one
            return lives.named(key, who, token) or _UNKNOWN
        if token == wire.NO_TOKEN:
            return self._begun(key, who) or _TOO_MANY
        return lives.resume(key, who, token) or _UNKNOWN

    def _begun(self, key: ContainerKey, who: ProcessId) -> Process | None:
        """Those that have died leave room, whether or not that was worked off."""
        process = self._ledger.lives.begin(key, who, os.urandom(wire.TOKEN_BYTES))
        while process is None and self._watch.make_room(key):
            process = self._ledger.lives.begin(key, who, os.urandom(wire.TOKEN_BYTES))
        return process

    def _session(self, served: Served, process: Process, peer: Peer) -> Session:
        self._watch.watch(process, peer)
        session = served.sessions.get(process.id)
        if session is None:
            session = Session(process, pids=pids_of(peer.pid), namespace=namespace_of(peer.pid))
            served.sessions[process.id] = session
        return session

    def _take(self, talk: Talk, packet: Packet, session: Session) -> None:
        process, is_signals = session.process, bool(packet.flags & Flag.SIGNALS)
        if is_signals:
            process.is_silent = False
        else:
            process.is_prompt = bool(packet.flags & Flag.PROMPT)
        if not is_signals and packet.token == wire.NO_TOKEN:
            session.close()  # of the program that ran in the process before
            for card in process.accounts:
                self._watch.doubts(process, card)
        talk.take(session, is_signals=is_signals)

    def _welcome(self, talk: Talk, packet: Packet, process: Process) -> None:
        self._counters.hellos[_TAKEN] += 1
        body = wire.hello_body(process.token, len(talk.served.budget.cards))
        page = None if packet.flags & Flag.SIGNALS else talk.served.page.descriptor
        talk.connection.send(wire.answer(packet, Result.OK, body), page)


_PAID: Final = 1
"""Of the rows that a packet writes, with the packet."""
_MOST_STRANGERS: Final = 2 * MOST_PROCESSES
# For what is done at each packet: to look a member up in its enumeration takes longer than to compare it.
_HELLO: Final = int(What.HELLO)
_DEAD: Final = State.DEAD


class Sessions:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        registry: Registry,
        hints: Hints,
        counters: Counters,
        watch: Watch,
        parking: ParkedQuestions,
        guarded: Guard,
        others: Mapping[int, Answer],
    ) -> None:
        """`guarded`, `others`: as `Answering` has them."""
        self._counters, self._entries = counters, ledger.entries
        self._arriving = Arriving(ledger, registry=registry, counters=counters, watch=watch)
        self._answering = Answering(
            ledger, registry=registry, hints=hints, watch=watch, parking=parking, guarded=guarded, others=others
        )
        self._talk = partial(Talk, on_packet=self._came, hung_up=ledger.lives.hung_up, counters=counters)

    def connected(self, served: Served, accepted: socket.socket) -> None:
        """A process of the container is there; which one is checked when it says HELLO."""
        if len(served.strangers) < _MOST_STRANGERS:
            self._talk(served, accepted)
        else:
            self._counters.turned_away += 1
            accepted.close()

    def _came(self, talk: Talk, data: bytes) -> None:
        before = self._entries.work
        self._hear(talk, data)
        more = self._entries.work - before - _PAID
        if more > 0:
            talk.served.bucket.spend(more)

    def _hear(self, talk: Talk, data: bytes) -> None:
        packet = wire.read(data)
        if packet is None:
            self._counters.wrong += 1
            talk.connection.close()  # what it speaks is not our protocol
        elif packet.version == wire.VERSION and packet.what == _HELLO and talk.session is None:
            self._arriving.hello(talk, packet)
        elif (answer := self._answer(talk.session, packet)) is not None:
            talk.connection.send(answer)

    def _answer(self, session: Session | None, packet: Packet) -> bytes | None:
        answer = self._answering.answers.get(packet.what) if packet.version == wire.VERSION else None
        if session is None or answer is None or session.process.state is _DEAD:
            return self._wrong(packet)
        if self._answering.knows_card(session, packet.card):
            return answer(session, packet)
        if packet.what in wire.UNANSWERED:
            self._counters.wrong += 1
            return None
        return wire.answer(packet, Result.UNKNOWN)

    def _wrong(self, packet: Packet) -> bytes:
        self._counters.wrong += 1
        return wire.answer(packet, Result.WRONG)
