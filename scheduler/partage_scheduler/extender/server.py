"""The port where kube-scheduler asks: connections that stay, one question after the other on each.

A connection before the end of its TLS handshake is a guest by `acceptor`'s rules, and pushes out no connection after
it. A caller that is not known by name is told so and heard no further. A question that only reads is answered at once,
on the loop; one that binds is a task, and its connection hears nothing more until it is answered. A request that has
begun has a deadline; a connection may rest as long as it likes, and of too many the one that rested longest is closed.
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
"""Of all requests together that are not whole yet, or wait for one before them."""
DEADLINE_S: Final = 10.0
HANDSHAKE_S: Final = 2.5
_BROKEN: Final = Unfit(500, "this could not be answered; see the log")
_log = structlog.get_logger()
Answering = Callable[[Ask], bytes | Awaitable[bytes]]
"""The body of an answer; raises `Unfit`."""


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
        _log.info("kube-scheduler is answered", address=f"{host}:{self.port}", tls=self._trust is not None)

    async def close(self) -> None:
        """No new connections, and no more requests on open ones; requests that are being answered still are."""
        if self._acceptor is not None:
            await self._acceptor.close()
        self.part()

    async def abort(self) -> None:
        for connection in tuple(self._connections):
            connection.abort()
        if self._acceptor is not None:
            await self._acceptor.abort()

    def part(self) -> None:
        """Ends every connection after its answer: callers may come again, and show who they are."""
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
        """A new connection. One that is not to be answered stays a guest, and gets `refusal`."""
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
        """More bytes came. Where all connections together hold too many, the one that holds most goes."""
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
        """Bytes that came and are not answered yet."""
        return self._listener.waiting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by name
        self._refusal = self._port.came(self, self._transport)
        if self._refusal is not None:
            self._deadline = asyncio.get_running_loop().call_later(DEADLINE_S, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """What was asked for is still done: a binding can't be called back."""
        del exc
        self._transport = None
        self._rest()
        self._port.went(self)
        self.over.set()

    def data_received(self, data: bytes) -> None:
        self._listener.hear(data)
        if self._refusal is not None and self._listener.waiting > MOST_HEAD_BYTES:
            self._send(refusal(self._refusal), is_last=True)  # and is not heard out
            return
        self._go_on()
        if self._transport is not None and self._listener.waiting > MOST_BODY_BYTES:
            self._transport.pause_reading()
        if self._listener.waiting:
            self._port.heard()

    def pause_writing(self) -> None:
        """The caller asks and does not read."""
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
            _log.exception("a question could not be answered", path=ask.path)
            raise _BROKEN from None

    async def _finish(self, ask: Ask, found: Awaitable[bytes]) -> None:
        try:
            self._send(answer(await found, is_last=ask.is_last), is_last=ask.is_last)
        except Exception:  # noqa: BLE001 - whatever it is costs this answer alone
            _log.exception("a question could not be answered", path=ask.path)
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
        """Not twice: asyncio's TLS transports that are closed twice can't be aborted any more (CPython 3.11)."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def _watch(self) -> None:
        """A request that has begun must come to its end."""
        if self._deadline is None and self._task is None and not self._listener.is_between:
            self._deadline = asyncio.get_running_loop().call_later(DEADLINE_S, self.abort)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
