"""A gRPC client for unary calls on a unix socket, many at once on one connection, without grpcio.

It connects at the first call, and again when the connection is gone. Every call has a deadline. A call whose connection
breaks is sent once more on a fresh one: usually the daemon was restarted since. For calls that must not run twice a
caller passes `repeatable=False`; they are repeated only if the peer can't have begun with them.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote

from partage_base.cri.errors import PeerAway, PeerRefused, PeerSlow
from partage_base.http2.client import LARGEST_QUESTION, ClientHalf, NotHttp2, Reply, header_block
from partage_base.http2.frames import ErrorCode

_PREFIX: Final = 5  # one byte for compression, four for the message's length
_LONGEST_WORDS: Final = 512
_UNKNOWN: Final = 2  # gRPC's status for servers that give none


class _Broken(Exception):
    """This connection gives no more responses."""

    def __init__(self, why: str, *, may_have_begun: bool = True) -> None:
        super().__init__(why)
        self.may_have_begun = may_have_begun


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.half = ClientHalf()
        self.why = "closed the connection"
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has the methods but not the class
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            self.half.receive(data)
        except NotHttp2 as error:
            self.why = str(error)
            self.close()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.why = str(exc)
        for answer in self.half.lost():
            if not answer.done.done():
                answer.done.set_exception(_Broken(self.why))

    def flush(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and (out := self.half.take()):
            self._transport.write(out)

    def close(self) -> None:
        self.half.is_usable = False
        if self._transport is not None:
            self._transport.abort()


class UnaryClient:
    """A client of one unix socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    @property
    def connection(self) -> object | None:
        """The connection of the last call: if it is another one, or None, the peer may have restarted since."""
        return self._connection if self._connection is not None and self._connection.half.is_usable else None

    async def call(self, method: str, request: bytes, *, deadline_s: float, repeatable: bool = True) -> bytes:
        """The response's bytes; raises `PeerAway`, `PeerSlow` or `PeerRefused`."""
        if len(request) + _PREFIX > LARGEST_QUESTION:
            raise ValueError(f"{method}: a question of {len(request)} bytes; at most {LARGEST_QUESTION - _PREFIX}")
        try:
            async with asyncio.timeout(deadline_s):
                try:
                    answer = await self._ask(method, request, deadline_s)
                except _Broken as broken:
                    if not repeatable and broken.may_have_begun:
                        raise
                    answer = await self._ask(method, request, deadline_s)
        except TimeoutError:
            raise PeerSlow(str(self._path), f"no answer to {_short(method)} within {deadline_s:g} s") from None
        except (OSError, _Broken) as error:
            raise PeerAway(str(self._path), f"{_short(method)}: {getattr(error, 'strerror', None) or error}") from None
        return self._message(method, answer)

    def close(self) -> None:
        """Closes the connection; the next call makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _ask(self, method: str, request: bytes, deadline_s: float) -> Reply:
        connection = await self._connected()
        done: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        body = b"\0" + len(request).to_bytes(4, "big") + request
        try:
            stream = connection.half.ask(_headers(method, deadline_s), body, done)
        except NotHttp2 as worn:
            raise _Broken(str(worn), may_have_begun=False) from None
        connection.flush()
        try:
            answer = await done
        finally:
            connection.half.give_up(stream)
            connection.flush()
        if answer.reset is not None:
            refused = answer.reset == ErrorCode.REFUSED_STREAM
            raise _Broken(f"reset the call with code {answer.reset}", may_have_begun=not refused)
        return answer

    async def _connected(self) -> _Connection:
        async with self._connecting:
            if self._connection is None or not self._connection.half.is_usable:
                self.close()
                loop = asyncio.get_running_loop()
                _, self._connection = await loop.create_unix_connection(_Connection, str(self._path))
            return self._connection

    def _message(self, method: str, answer: Reply) -> bytes:
        peer = str(self._path)
        if (status := answer.headers.get("grpc-status", "")) != "0":
            words = unquote(
                answer.headers.get("grpc-message", "") or f"HTTP {answer.headers.get(':status', 'nothing')}"
            )
            raise PeerRefused(peer, int(status) if status.isdecimal() else _UNKNOWN, words[:_LONGEST_WORDS])
        data = bytes(answer.data)
        if len(data) < _PREFIX or data[0] != 0 or int.from_bytes(data[1:_PREFIX], "big") != len(data) - _PREFIX:
            raise PeerAway(peer, f"{_short(method)}: the answer is not one whole message")
        return data[_PREFIX:]


@lru_cache(maxsize=64)
def _headers(method: str, deadline_s: float) -> bytes:
    return header_block(
        {
            ":method": "POST",
            ":scheme": "http",
            ":path": method,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
            "user-agent": "partage",
            "grpc-timeout": f"{max(1, int(deadline_s * 1000))}m",
        }
    )


def _short(method: str) -> str:
    return method.rpartition("/")[2]
