"""HELLO: which process a connection is of, and what it is welcomed with.

Who a process is, is the socket by which it came, checked against the kernel's word for its pid, when that began, and
its control group. It is never what a packet says; a token is good only from the process that it was given to.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Final

from partage_isolation.broker import wire
from partage_isolation.broker.buckets import HELLO_COSTS
from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.identities import Identities
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.pieces import ProcessId
from partage_isolation.broker.processes import NoProcess, Peer, namespace_of, peer_of, pids_of
from partage_isolation.broker.served import Served, Session
from partage_isolation.broker.states import State
from partage_isolation.broker.talks import Talk
from partage_isolation.broker.watcher import Watcher
from partage_isolation.broker.wire import Flag, Packet, Result

_TAKEN: Final = "taken"


@dataclass(frozen=True)
class _Unwelcome:
    result: Result
    why: str


_OF_ANOTHER: Final = _Unwelcome(Result.UNKNOWN, "of another container")
_UNKNOWN: Final = _Unwelcome(Result.UNKNOWN, "of no known token")
_TOO_MANY: Final = _Unwelcome(Result.FULL, "too many processes")


class Arriving:
    """Of all containers."""

    def __init__(self, ledger: Ledger, *, identities: Identities, counters: Counters, watcher: Watcher) -> None:
        self._ledger, self._identities = ledger, identities
        self._counters, self._watcher = counters, watcher

    def hello(self, talk: Talk, packet: Packet) -> None:
        """Somebody says to be a process of the container by whose socket he came."""
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
        if not self._identities.may_be(served.spec.key, peer.pid):
            return _OF_ANOTHER
        who, token = (peer.pid, peer.start), packet.token
        if packet.flags & Flag.SIGNALS:
            return _with_calls(served.container, who, token) or _UNKNOWN
        if token == wire.NO_TOKEN:
            return self._ledger.lives.begin(served.container, who, os.urandom(wire.TOKEN_BYTES)) or _TOO_MANY
        return self._ledger.lives.resume(served.container, who, token) or _UNKNOWN

    def _session(self, served: Served, process: Process, peer: Peer) -> Session:
        self._watcher.watch(process, peer)
        session = served.sessions.get(process.id)
        if session is None:
            session = Session(process, pids=pids_of(peer.pid), namespace=namespace_of(peer.pid))
            served.sessions[process.id] = session
        return session

    def _take(self, talk: Talk, packet: Packet, session: Session) -> None:
        process, is_signals = session.process, bool(packet.flags & Flag.SIGNALS)
        if is_signals:
            process.is_silent = False
        elif packet.token == wire.NO_TOKEN:
            session.close()  # of the program that ran in the process before
            for card in process.accounts:
                self._watcher.doubts(process, card)
        talk.take(session, is_signals=is_signals)

    def _welcome(self, talk: Talk, packet: Packet, process: Process) -> None:
        self._counters.hellos[_TAKEN] += 1
        body = wire.hello_body(process.token, len(talk.served.container.cards))
        page = None if packet.flags & Flag.SIGNALS else talk.served.page.descriptor
        talk.connection.send(wire.answer(packet, Result.OK, body), page)


def _with_calls(container: Container, who: ProcessId, token: bytes) -> Process | None:
    """Only who has a connection for questions, or had one, gets one for hints."""
    process = container.by_token.get(token)
    if process is None or process.id != who or process.state in (State.DEAD, State.FOUND):
        return None
    return process
