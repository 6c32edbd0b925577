"""One connection of a container's process: whose it is, how long it may be nobody's, and its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from partage_isolation.broker.containers import Process
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.served import Served, Session
from partage_isolation.broker.sockets import Connection
from partage_isolation.broker.states import State

_HELLO_WITHIN_S: Final = 5.0


class Talk:
    """Nobody's, until who is there was found to be a process of the container."""

    __slots__ = ("_hung_up", "_patience", "connection", "served", "session")

    def __init__(
        self,
        served: Served,
        accepted: socket.socket,
        *,
        on_packet: Callable[[Talk, bytes], None],
        hung_up: Callable[[Process], None],
        counters: Counters,
    ) -> None:
        """`hung_up` hears of a process that asks no more, unless we ended that ourselves."""
        self.served, self._hung_up = served, hung_up
        self.session: Session | None = None
        self.connection = Connection(
            accepted,
            on_packet=partial(on_packet, self),
            on_end=self._ended,
            shared=served.bucket,
            counters=counters,
        )
        served.strangers.add(self.connection)
        self._patience = asyncio.get_running_loop().call_later(_HELLO_WITHIN_S, self.connection.close)

    def take(self, session: Session, *, is_signals: bool) -> None:
        """It is of that process from now on; an earlier one of the same kind is over."""
        before = session.signals if is_signals else session.calls
        if is_signals:
            session.signals = self.connection
        else:
            session.calls = self.connection
        self.session = session
        self.served.strangers.discard(self.connection)
        self._patience.cancel()
        if before is not None:
            before.close()

    def _ended(self) -> None:
        self._patience.cancel()
        self.served.strangers.discard(self.connection)
        session = self.session
        if session is None:
            return
        if session.calls is self.connection:
            session.calls = None
            self._hung_up(session.process)
        elif session.signals is self.connection:
            session.signals = None
        if session.process.state is State.GONE:
            self.served.sessions.pop(session.process.id, None)
