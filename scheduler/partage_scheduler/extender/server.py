"""The port that kube-scheduler calls: persistent connections, one request at a time on each.

Until its TLS handshake is complete, a connection is a guest by `acceptor`'s rules, and displaces no established one. A
caller whose name is not allowed gets an error, and further input is ignored. Calls that only read are answered at once
on the event loop; bind runs as a task, and its connection is not read until the answer is sent. A request that has
begun has a deadline; an idle connection has none, and above the limit the one that was idle longest is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, cast

import structlog

from partage_base.acceptor import Acceptor, Guest
from partage_base.daemon.errors import CannotListen
from partage_scheduler.extender.callers import CallerTrust
from partage_scheduler.extender.wire import MOST_BODY_BYTES, MOST_HEAD_BYTES, Ask, Listener, Unfit, answer, refusal

MOST_CONNECTIONS: Final = 256
MOST_HEARD_BYTES: Final = 64 << 20
"""Total size of all requests that are incomplete or wait for one before them."""
DEADLINE_S: Final = 10.0
HANDSHAKE_S: Final = 2.5
_BROKEN: Final = Unfit(500, "this could not be answered; see the log")
_log = structlog.get_logger()
Answering = Callable[[Ask], bytes | Awaitable[bytes]]
"""Returns the body of an answer; raises `Unfit`."""


class Port:
    def __init__(self, address: str, answering: Answering, *, trust: CallerTrust | None = None) -> None:
        """`address` is `host:port`. Without `trust` every caller is answered."""
        self._address, self._answering, self._trust = address, answering, trust
        self._acceptor: Acceptor | None = None
        self._connections: dict[Connection, None] = {}
        self.port = 0

    async def open(self) -> None:
        host, _, port = self._address.rpartition(":")
        acceptor = Acceptor(host.strip("[]"), int(port), self._serve)
        try:
            await acceptor.open()
        except OSError as error:
            why = error.strerror or error
            raise CannotListen(f"cannot listen on {self._address}: {why}; change extender_address") from error
        self._acceptor, self.port = acceptor, acceptor.port
        _log.info("listening for kube-scheduler", address=f"{host}:{self.port}", tls=self._trust is not None)

    async def close(self) -> None:
        """Accepts no new connections and no more requests on open ones; those under way are still answered."""
        if self._acceptor is not None:
            await self._acceptor.close()
        self.part()

    async def abort(self) -> None:
        for connection in tuple(self._connections):
            connection.abort()
        if self._acceptor is not None:
            await self._acceptor.abort()

    def part(self) -> None:
        """Ends every connection after its current answer: callers must connect and authenticate again."""
        for connection in tuple(self._connections):
            connection.end()

    async def _serve(self, guest: Guest) -> None:
        made = Connection(self)
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
            lambda: made,
            guest.sock,
            ssl=None if self._trust is None else self._trust.context,
            ssl_handshake_timeout=None if self._trust is None else HANDSHAKE_S,
        )
        if made in self._connections:
            guest.known()
        try:
            await made.over.wait()
        finally:
            transport.abort()

    def answer(self, ask: Ask) -> bytes | Awaitable[bytes]:
        return self._answering(ask)

    def came(self, connection: Connection, transport: asyncio.Transport) -> Unfit | None:
        """Registers a connection, or returns why not. One that is refused stays a guest, and gets `refusal`."""
        if self._trust is not None and (why := self._trust.against(transport.get_extra_info("peercert"))) is not None:
            return Unfit(403, why)
        if len(self._connections) >= MOST_CONNECTIONS:
            next(iter(self._connections)).abort()
        self._connections[connection] = None
        return None

    def worked(self, connection: Connection) -> None:
        if connection in self._connections:
            del self._connections[connection]
            self._connections[connection] = None

    def heard(self) -> None:
        """Bounds the unanswered bytes of all connections: above the limit, aborts the one with most."""
        if sum(each.waiting for each in self._connections) > MOST_HEARD_BYTES:
            max(self._connections, key=lambda each: each.waiting).abort()

    def went(self, connection: Connection) -> None:
        self._connections.pop(connection, None)


class Connection(asyncio.Protocol):
    def __init__(self, port: Port) -> None:
        self._port = port
        self._listener = Listener()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._refusal: Unfit | None = None
        self._is_full = self._is_ending = False
        self.over = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Received bytes that are not answered yet."""
        return self._listener.waiting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._refusal = self._port.came(self, self._transport)
        if self._refusal is not None:
            self._deadline = asyncio.get_running_loop().call_later(DEADLINE_S, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """A request under way is still carried out: a binding can't be revoked."""
        del exc
        self._transport = None
        self._rest()
        self._port.went(self)
        self.over.set()

    def data_received(self, data: bytes) -> None:
        self._listener.hear(data)
        if self._refusal is not None and self._listener.waiting > MOST_HEAD_BYTES:
            self._send(refusal(self._refusal), is_last=True)  # without waiting for its body
            return
        self._go_on()
        if self._transport is not None and self._listener.waiting > MOST_BODY_BYTES:
            self._transport.pause_reading()
        if self._listener.waiting:
            self._port.heard()

    def pause_writing(self) -> None:
        """The caller does not read our answers."""
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._go_on()

    def end(self) -> None:
        self._is_ending = True
        if self._task is None:
            self._close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _go_on(self) -> None:
        try:
            while self._may_answer and (ask := self._listener.next()) is not None:
                self._rest()
                self._port.worked(self)
                self._begin(ask)
        except Unfit as unfit:
            self._send(refusal(unfit), is_last=True)
        self._watch()

    @property
    def _may_answer(self) -> bool:
        return self._task is None and not self._is_full and not self._is_ending and self._transport is not None

    def _begin(self, ask: Ask) -> None:
        if self._refusal is not None:
            raise self._refusal
        found = self._tried(ask)
        if isinstance(found, bytes):
            self._send(answer(found, is_last=ask.is_last), is_last=ask.is_last)
        else:
            self._task = asyncio.create_task(self._finish(ask, found))

    def _tried(self, ask: Ask) -> bytes | Awaitable[bytes]:
        try:
            return self._port.answer(ask)
        except Unfit:
            raise
        except Exception:  # noqa: BLE001 - whatever it is costs this answer alone
            _log.exception("a request could not be answered", path=ask.path)
            raise _BROKEN from None

    async def _finish(self, ask: Ask, found: Awaitable[bytes]) -> None:
        try:
            self._send(answer(await found, is_last=ask.is_last), is_last=ask.is_last)
        except Exception:  # noqa: BLE001 - whatever it is costs this answer alone
            _log.exception("a request could not be answered", path=ask.path)
            self._send(refusal(_BROKEN), is_last=True)
        finally:
            self._task = None
        if self._is_ending:
            self.end()
        if self._transport is not None:
            self._transport.resume_reading()
        self._go_on()

    def _send(self, data: bytes, *, is_last: bool) -> None:
        if self._transport is None:
            return
        self._transport.write(data)
        if is_last:
            self._is_ending = True
            self._close()

    def _close(self) -> None:
        """Closes once: asyncio's TLS transports can't be aborted any more after a second close (CPython 3.11)."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def _watch(self) -> None:
        """Sets the deadline of a request that has begun."""
        if self._deadline is None and self._task is None and not self._listener.is_between:
            self._deadline = asyncio.get_running_loop().call_later(DEADLINE_S, self.abort)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
