"""Client connections and the sessions that own them: one packet is read per readiness event, and sends never block.

A client that exceeds its rate is not read for a moment; one that does not read its responses is disconnected.
Descriptors that a client sends are never received: no buffer for them is given to the kernel, which closes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.ledger.budget import Budget, Process
from partage_isolation.ledger.pieces import ProcessId
from partage_isolation.metrics import Counters
from partage_isolation.store.page import Page
from partage_isolation.store.specs import Spec
from partage_isolation.wire.packets import BYTES, Packet

RATE: Final = 2000
"""Packets per second of a connection; a program that allocates as fast as a card permits stays far below."""
BURST: Final = 200
CONTAINER_RATE: Final = 8000
"""For all of a container's connections: a tenth of what the broker can handle, however many it opens."""
CONTAINER_BURST: Final = 1600
NAMESPACE_RATE: Final = 2 * CONTAINER_RATE
"""For all containers of a namespace."""
NAMESPACE_BURST: Final = 2 * CONTAINER_BURST
HELLO_COSTS: Final = 10
"""Each makes the broker inspect a process."""
LEASE_COSTS: Final = 4
"""Each packet about time slices makes the broker decide what runs next."""
NEWCOMERS_RATE: Final = 500
"""New connections per second."""
NEWCOMERS_BURST: Final = 600
REST_S: Final = 0.010
"""How long a connection that used up its bucket is not read."""


class Bucket:
    """A token bucket that refills continuously up to `burst`. What is taken is also taken from the shared one above."""

    __slots__ = ("__weakref__", "_above", "_at_s", "_burst", "_left", "_rate")

    def __init__(self, now_s: float, *, rate: float = RATE, burst: float = BURST, above: Bucket | None = None) -> None:
        self._left, self._at_s, self._rate, self._burst, self._above = burst, now_s, rate, burst, above

    def take(self, now_s: float, cost: int = 1) -> bool:
        """Take tokens; return False if the client should pause now."""
        left, burst = self._left + (now_s - self._at_s) * self._rate, self._burst
        left = (left if left < burst else burst) - cost  # noqa: FURB136  `min` and `max` take longer, at each packet
        self._left, self._at_s = (left if left > -burst else -burst), now_s  # noqa: FURB136
        return left > 0 if self._above is None else self._above.take(now_s, cost) and left > 0

    def spend(self, cost: int) -> None:
        """Charge more for what was just taken."""
        self._left = max(-self._burst, self._left - cost)
        if self._above is not None:
            self._above.spend(cost)

    def empty_for_s(self, now_s: float) -> float:
        """How long until tokens are available; 0 if there are any."""
        above_s = 0.0 if self._above is None else self._above.empty_for_s(now_s)
        return max(above_s, -self._left / self._rate - (now_s - self._at_s))


_now_s: Final = time.monotonic
_AT_ONCE: Final = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
"""A plain number: each packet would look the names up."""
_HELLO_WITHIN_S: Final = 5.0


class Connection:
    """A connection; it has no process until its peer is verified, and lives until either side closes it."""

    __slots__ = (
        "_bucket",
        "_counters",
        "_ended",
        "_heard",
        "_loop",
        "_patience",
        "_resting",
        "_shared",
        "fd",
        "is_open",
        "served",
        "session",
        "socket",
    )

    def __init__(
        self,
        accepted: socket.socket,
        served: Served,
        *,
        heard: Callable[[Connection, bytes], None],
        ended: Callable[[Connection], None],
        counters: Counters,
    ) -> None:
        """`heard` is called with each packet, of any length; `ended` once, when either side closed the connection."""
        self._loop = asyncio.get_running_loop()
        self._heard, self._ended, self._counters = heard, ended, counters
        self._bucket, self._shared = Bucket(_now_s()), served.bucket
        self._resting: asyncio.TimerHandle | None = None
        self.socket, self.fd, self.is_open = accepted, accepted.fileno(), True
        self.served = served
        self.session: Session | None = None
        accepted.setblocking(False)
        self._loop.add_reader(self.fd, self._readable)
        served.strangers.add(self)
        self._patience = self._loop.call_later(_HELLO_WITHIN_S, self.close)

    def is_of(self, session: Session) -> None:
        """Assign the connection to the process that sent HELLO on it."""
        self.session = session
        self.served.strangers.discard(self)
        self._patience.cancel()

    def send(self, packet: bytes, descriptor: int | None = None) -> bool:
        """Send a packet; False if the connection is closed, or is closed now because the client does not read."""
        if not self.is_open:
            return False
        try:
            if descriptor is None:
                self.socket.send(packet, _AT_ONCE)
            else:
                socket.send_fds(self.socket, [packet], [descriptor], _AT_ONCE)
        except BlockingIOError:
            self._counters.unread += 1
            self.close()
        except OSError:
            self.close()
        return self.is_open

    def hint(self, packet: bytes) -> bool:
        """Like `send`, but a packet for which there is no space is dropped: that costs time, not correctness."""
        if not self.is_open:
            return False
        try:
            self.socket.send(packet, _AT_ONCE)
        except BlockingIOError:
            return False
        except OSError:
            self.close()
            return False
        return True

    def close(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if self._resting is not None:
            self._resting.cancel()
        self._patience.cancel()
        self._loop.remove_reader(self.fd)
        self.socket.close()
        self.served.strangers.discard(self)
        self._ended(self)

    def _readable(self) -> None:
        now_s = _now_s()
        if self._shared.empty_for_s(now_s):
            self._rest()  # before reading, or each of many connections would get one more packet in
            return
        try:
            packet = self.socket.recv(BYTES + 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            packet = b""
        if not packet:
            self.close()
            return
        self._counters.packets += 1
        is_within, is_shared = self._bucket.take(now_s), self._shared.take(now_s)
        if not (is_within and is_shared):
            self._rest()
        self._heard(self, packet)

    def _rest(self) -> None:
        self._counters.disarmed += 1
        self._loop.remove_reader(self.fd)
        self._rest_on()

    def _rest_on(self) -> None:
        """Pause until the container's shared bucket, which its other connections also drain, has tokens."""
        rest_s = max(REST_S, self._shared.empty_for_s(_now_s()))
        self._resting = self._loop.call_later(rest_s, self._rested)

    def _rested(self) -> None:
        self._resting = None
        if not self.is_open:
            return
        if self._shared.empty_for_s(_now_s()):
            self._rest_on()
        else:
            self._loop.add_reader(self.fd, self._readable)


class Listener:
    """A container's listening socket; limits the rate of new connections."""

    def __init__(
        self, listening: socket.socket, *, on_connection: Callable[[socket.socket], None], counters: Counters
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket, self._on_connection, self._counters = listening, on_connection, counters
        self._bucket = Bucket(_now_s(), rate=NEWCOMERS_RATE, burst=NEWCOMERS_BURST)
        self._resting: asyncio.TimerHandle | None = None
        self._is_open = True
        self._loop.add_reader(listening.fileno(), self._acceptable)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._resting is not None:
                self._resting.cancel()
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _acceptable(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # out of descriptors or memory, until other connections close
            self._counters.turned_away += 1
            self._rest()
            return
        if not self._bucket.take(_now_s()):
            self._rest()
        try:
            self._on_connection(accepted)
        except OSError:
            self._counters.turned_away += 1
            accepted.close()

    def _rest(self) -> None:
        self._counters.disarmed += 1
        with contextlib.suppress(OSError):
            self._loop.remove_reader(self._socket.fileno())
        self._resting = self._loop.call_later(REST_S, self._rested)

    def _rested(self) -> None:
        self._resting = None
        if self._is_open:
            self._loop.add_reader(self._socket.fileno(), self._acceptable)


@dataclass(slots=True, eq=False)
class Session:
    """A process that is, or was, connected."""

    process: Process
    calls: Connection | None = None
    signals: Connection | None = None
    pids: tuple[int, ...] = ()
    """From the broker's pid namespace down to the process's own."""
    namespace: int = 0

    def close(self) -> None:
        """Close its connections, after detaching them from the session."""
        mine, self.calls, self.signals = (self.calls, self.signals), None, None
        for connection in mine:
            if connection is not None:
                connection.close()


Answer = Callable[[Session, Packet], bytes | None]
"""Handler of one kind of request; None means no response, or not yet."""


@dataclass(slots=True, eq=False)
class Served:
    """A container with all open resources that serve it."""

    spec: Spec
    budget: Budget
    """What it may use, alone or with other containers."""
    page: Page
    bucket: Bucket
    """Shared by all its connections; below its namespace's bucket."""
    listener: Listener | None = None
    sessions: dict[ProcessId, Session] = field(default_factory=dict[ProcessId, Session])
    strangers: set[Connection] = field(default_factory=set[Connection])
    """Connections that have not sent HELLO."""

    def close(self) -> None:
        """Close all of it; files stay."""
        if self.listener is not None:
            self.listener.close()
        for session in list(self.sessions.values()):
            session.close()
        for connection in list(self.strangers):
            connection.close()
        self.page.close()
