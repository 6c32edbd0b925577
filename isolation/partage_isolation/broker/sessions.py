"""Conversations with the processes of containers: bytes become a packet, a packet a question of whom they are from.

Who that is, is `arriving`'s business; what is answered, `answering`'s.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import partial
from typing import Final

from partage_isolation.broker import wire
from partage_isolation.broker.answering import Answer, Answering
from partage_isolation.broker.arriving import Arriving
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.hints import Hints
from partage_isolation.broker.identities import Identities
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.lives import MOST_PROCESSES
from partage_isolation.broker.served import Served, Session
from partage_isolation.broker.states import State
from partage_isolation.broker.talks import Talk
from partage_isolation.broker.verdicts import Verdict
from partage_isolation.broker.viewing import verdict_answer
from partage_isolation.broker.watcher import Watcher
from partage_isolation.broker.wire import Packet, Result, What

_MOST_STRANGERS: Final = 2 * MOST_PROCESSES
# For what is done at each packet: to look a member up in its enumeration takes longer than to compare it.
_HELLO: Final = int(What.HELLO)
_DEAD: Final = State.DEAD


class Sessions:
    """Of all containers."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        identities: Identities,
        hints: Hints,
        counters: Counters,
        watcher: Watcher,
        leases: Mapping[int, Answer],
    ) -> None:
        """`leases`: what is said of leases, and who hears it."""
        self._counters = counters
        self._arriving = Arriving(ledger, identities=identities, counters=counters, watcher=watcher)
        self._answering = Answering(ledger, identities=identities, hints=hints, watcher=watcher, leases=leases)
        self._talk = partial(Talk, on_packet=self._came, hung_up=ledger.lives.hung_up, counters=counters)

    def connected(self, served: Served, accepted: socket.socket) -> None:
        """Somebody of the container is there; who, is asked when he says HELLO."""
        if len(served.strangers) < _MOST_STRANGERS:
            self._talk(served, accepted)
        else:
            self._counters.turned_away += 1
            accepted.close()

    def _came(self, talk: Talk, data: bytes) -> None:
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


def decided(session: Session, packet: Packet, verdict: Verdict) -> None:
    """Sends the answer to a question that was parked."""
    if session.calls is not None:
        session.calls.send(verdict_answer(packet, verdict))
