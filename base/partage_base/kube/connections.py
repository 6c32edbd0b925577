"""A bounded pool of keep-alive connections, one request at a time on each.

A request is sent once, in one piece, and the caller gets every error. A connection with any irregularity is closed, not
reused.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any, Final, NamedTuple, cast
from weakref import WeakSet

from partage_base.kube.http1 import Answer, NotHttp1, TruncatedResponse

CONNECT_WITHIN_S: Final = 5.0
KEPT_S: Final = 30.0
"""How long an idle connection is kept; API servers keep theirs longer, so they don't close one in use."""


Address = tuple[int, int, int, str, Any]
"""An address as `getaddrinfo` returns it."""


class Place(NamedTuple):
    host: str
    port: int
    tls: ssl.SSLContext | None
    """None: plain HTTP."""
    server_name: str | None


class NotConnected(Exception):
    """No server was reached, so nothing was sent."""

    def __init__(self, place: Place, error: OSError | None = None) -> None:
        """Without an error: it timed out."""
        super().__init__(place, error)
        self.where, self.error = f"{place.host}:{place.port}", error


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._done: asyncio.Future[None] | None = None
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether a request may be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has the methods but not the class

    def data_received(self, data: bytes) -> None:
        """Data of the response; a connection on which the peer sends unasked is closed."""
        if self._answer is None:
            self.abort()
            return
        try:
            self._answer.take(data)
        except NotHttp1 as error:
            self._end(error)
        else:
            if self._answer.is_whole:
                self._end(None)

    def eof_received(self) -> bool:
        """The peer sends no more."""
        self._over(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed in both directions."""
        self._over(exc)
        self._transport = None

    async def ask(self, request: bytes, answer: Answer) -> None:
        """Returns when the response is complete; raises `NotHttp1`, `TruncatedResponse` or the network's error."""
        if self._transport is None:
            raise TruncatedResponse
        self._answer, self._done = answer, asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            await self._done
        except asyncio.CancelledError:
            self.abort()  # a response may still come, and is dropped
            raise
        finally:
            self._answer = self._done = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _over(self, error: Exception | None) -> None:
        if self._answer is not None and self._done is not None and not self._done.done():
            try:
                self._answer.end()
            except TruncatedResponse as cut:
                self._end(error or cut)
            else:
                self._end(None)

    def _end(self, error: Exception | None) -> None:
        done = self._done
        if error is not None:
            self.abort()
        if done is not None and not done.done():
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)


class Connections:
    def __init__(self, most: int, sockets: Sockets) -> None:
        self._room = asyncio.Semaphore(most)
        self._sockets = sockets
        self._all: set[Connection] = set()
        self._idle: list[tuple[Place, Connection]] = []

    async def ask(self, place: Place, request: bytes, answer: Answer) -> None:
        """Waits for a free slot, connects unless a connection is idle, and returns when the response is complete.

        Raises `NotConnected`, or what `Connection.ask` raises.
        """
        async with self._room:
            connection = self._kept(place) or await self._opened(place)
            self._all.add(connection)
            try:
                await connection.ask(request, answer)
            except BaseException:
                connection.abort()
                self._all.discard(connection)
                raise
            self._put_back(place, connection, is_kept=answer.is_kept)

    def end(self) -> None:
        """Closes all connections; calls in flight fail."""
        for connection in tuple(self._all):
            connection.abort()
        self._all.clear()
        self._idle.clear()

    def _kept(self, place: Place) -> Connection | None:
        """The idle connection that was used last."""
        since = asyncio.get_running_loop().time() - KEPT_S
        while self._idle:
            where, connection = self._idle.pop()
            if where == place and connection.is_open and connection.idle_since >= since:
                return connection
            connection.abort()
            self._all.discard(connection)
        return None

    def _put_back(self, place: Place, connection: Connection, *, is_kept: bool) -> None:
        if is_kept and connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append((place, connection))
        else:
            connection.abort()
            self._all.discard(connection)

    async def _opened(self, place: Place) -> Connection:
        made = await self._reached(place)
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection,
                sock=made,
                ssl=place.tls,
                server_hostname=None if place.tls is None else place.server_name or place.host,
            )
        except OSError as error:
            made.close()
            raise NotConnected(place, error) from error
        except BaseException:
            made.close()
            raise
        return connection

    async def _reached(self, place: Place) -> socket.socket:
        """A socket connected to one of the addresses of the host's name."""
        loop = asyncio.get_running_loop()
        failure = NotConnected(place)
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                for address in await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM):
                    try:
                        return await self._connected(address)
                    except OSError as error:
                        failure = NotConnected(place, error)
        except OSError as error:
            raise (failure if isinstance(error, TimeoutError) else NotConnected(place, error)) from error
        raise failure

    async def _connected(self, address: Address) -> socket.socket:
        made = self._sockets.make(address)
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, address[4])
        except BaseException:
            made.close()
            raise
        return made


_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
_GONE_WITHIN_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.001


class Sockets:
    """Sockets that detect a vanished peer by keepalive, and that close without waiting for the peer."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[int, int, int, str, object]) -> socket.socket:
        """A socket for a `getaddrinfo` address; a connection whose peer is silent breaks within half a minute."""
        made = socket.socket(*address[:3])
        for option in _ALIVE:
            made.setsockopt(*option)
        self._made.add(made)
        return made

    async def end(self) -> None:
        """Shuts down what is still open, and returns when the owners have closed them."""
        with contextlib.suppress(TimeoutError):  # the rest ends by itself
            async with asyncio.timeout(_GONE_WITHIN_S):
                while still_open := [each for each in self._made if each.fileno() >= 0]:
                    for each in still_open:
                        with contextlib.suppress(OSError):  # its peer closed first
                            each.shutdown(socket.SHUT_RDWR)
                    await asyncio.sleep(_LOOK_EVERY_S)
