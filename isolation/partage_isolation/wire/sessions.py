"""Sessions with the processes of containers: HELLO, then requests.

The socket that a connection used determines the container. The kernel provides pid, start time and cgroup, which are
never taken from a packet, and a token is valid only for the process that received it.
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
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import MOST_PROCESSES, Ledger
from partage_isolation.ledger.pieces import ProcessId
from partage_isolation.metrics import Counters
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import HELLO_COSTS, Answer, Connection, Listener, Served, Session
from partage_isolation.wire.packets import Flag, Packet, Result, What
from partage_isolation.wire.served import Registry
from partage_isolation.wire.timeslices import TimeSlices
from partage_isolation.wire.watch import Watch
from partage_plugins.api.names import ContainerKey

_TAKEN: Final = "taken"


@dataclass(frozen=True)
class _Unwelcome:
    result: Result
    why: str


_OF_ANOTHER: Final = _Unwelcome(Result.UNKNOWN, "of another container")
_UNKNOWN: Final = _Unwelcome(Result.UNKNOWN, "of no known token")
_TOO_MANY: Final = _Unwelcome(Result.FULL, "too many processes")

_PAID: Final = 1
"""The packet's price already includes one written row."""
_MOST_STRANGERS: Final = 2 * MOST_PROCESSES
# Plain values for code that runs per packet: looking up an enumeration's member is slower than a comparison.
_HELLO: Final = int(What.HELLO)
_DEAD: Final = State.DEAD


class Sessions:
    """Handles packets and ends of connections, and dispatches requests to their handlers."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        registry: Registry,
        counters: Counters,
        watch: Watch,
        timeslices: TimeSlices,
        answers: Mapping[int, Answer],
    ) -> None:
        """`answers` maps kinds of requests to handlers."""
        self._ledger, self._registry, self._counters = ledger, registry, counters
        self._watch, self._timeslices, self._answers = watch, timeslices, answers

    def listener(self, served: Served, listening: socket.socket) -> Listener:
        """A listener on a container's socket, whose connections are served from then on."""
        return Listener(listening, on_connection=partial(self._connected, served), counters=self._counters)

    def _connected(self, served: Served, accepted: socket.socket) -> None:
        """Accept a connection; its process is identified by HELLO."""
        if len(served.strangers) < _MOST_STRANGERS:
            Connection(accepted, served, heard=self._heard, ended=self._ended, counters=self._counters)
        else:
            self._counters.turned_away += 1
            accepted.close()

    def _heard(self, connection: Connection, data: bytes) -> None:
        before = self._ledger.entries.work
        packet, session = wire.read(data), connection.session
        if packet is None:
            self._counters.wrong += 1
            connection.close()  # a different protocol
        elif packet.version == wire.VERSION and packet.what == _HELLO and session is None:
            self._hello(connection, packet)
        elif (answer := self._answer(session, packet)) is not None:
            connection.send(answer)
        more = self._ledger.entries.work - before - _PAID
        if more > 0:
            connection.served.bucket.spend(more)

    def _answer(self, session: Session | None, packet: Packet) -> bytes | None:
        answer = self._answers.get(packet.what) if packet.version == wire.VERSION else None
        if session is None or answer is None or session.process.state is _DEAD:
            self._counters.wrong += 1
            return wire.answer(packet, Result.WRONG)
        budget = self._ledger.containers.get(session.process.key)
        if budget is not None and packet.card < len(budget.cards):
            return answer(session, packet)
        if packet.what in wire.UNANSWERED:
            self._counters.wrong += 1
            return None
        return wire.answer(packet, Result.UNKNOWN)

    def _ended(self, connection: Connection) -> None:
        """Clean up after a closed connection. Its process sends no more requests, unless the broker closed it."""
        session = connection.session
        if session is None:
            return
        if session.calls is connection:
            session.calls = None
            self._ledger.lives.hung_up(session.process)
        elif session.signals is connection:
            session.signals = None
        if session.process.state is State.GONE:
            connection.served.sessions.pop(session.process.id, None)
        self._timeslices.hung_up(session, connection)

    # ---- HELLO -------------------------------------------------------------------------------------------------------

    def _hello(self, connection: Connection, packet: Packet) -> None:
        """Identify the process behind a connection, which must be in the container whose socket it used."""
        served = connection.served
        served.bucket.take(time.monotonic(), HELLO_COSTS)
        try:
            peer = peer_of(connection.socket)
        except NoProcess:
            connection.close()
            return
        who = self._who(served, packet, peer)
        if isinstance(who, _Unwelcome):
            os.close(peer.pidfd)
            self._counters.hellos[who.why] += 1
            connection.send(wire.answer(packet, who.result))
            return
        self._take(connection, packet, self._session(served, who, peer))
        self._counters.hellos[_TAKEN] += 1
        body = wire.hello_body(who.token, len(served.budget.cards))
        page = None if packet.flags & Flag.SIGNALS else served.page.descriptor
        connection.send(wire.answer(packet, Result.OK, body), page)

    def _who(self, served: Served, packet: Packet, peer: Peer) -> Process | _Unwelcome:
        if not self._registry.may_be(served, peer.pid):
            return _OF_ANOTHER
        lives, key = self._ledger.lives, served.spec.key
        who, token = (peer.pid, peer.start), packet.token
        if packet.flags & Flag.SIGNALS:  # only for a process that has or had a connection for requests
            return lives.named(key, who, token) or _UNKNOWN
        if token == wire.NO_TOKEN:
            return self._begun(key, who) or _TOO_MANY
        return lives.resume(key, who, token) or _UNKNOWN

    def _begun(self, key: ContainerKey, who: ProcessId) -> Process | None:
        """Begin accounting of a process; processes that died free their places, even if not processed yet."""
        process = self._ledger.lives.begin(key, who, os.urandom(wire.TOKEN_BYTES))
        while process is None and self._watch.deaths.do_one(key):
            process = self._ledger.lives.begin(key, who, os.urandom(wire.TOKEN_BYTES))
        return process

    def _session(self, served: Served, process: Process, peer: Peer) -> Session:
        self._watch.watch(process, peer)
        session = served.sessions.get(process.id)
        if session is None:
            session = Session(process, pids=pids_of(peer.pid), namespace=namespace_of(peer.pid))
            served.sessions[process.id] = session
        return session

    def _take(self, connection: Connection, packet: Packet, session: Session) -> None:
        """Assign the connection to the process, and close the previous one of the same kind."""
        process = session.process
        if packet.flags & Flag.SIGNALS:
            process.is_silent = False
            before, session.signals = session.signals, connection
        else:
            process.is_prompt = bool(packet.flags & Flag.PROMPT)
            if packet.token == wire.NO_TOKEN:
                session.close()  # left from the program that ran in the process before
                for card in process.accounts:
                    self._watch.doubts(process, card)
            before, session.calls = session.calls, connection
        connection.is_of(session)
        if before is not None:
            before.close()
