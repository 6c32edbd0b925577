"""Bounds browsers' connections: those without a viewer are guests by `acceptor`'s rules, the others are counted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from partage_base.acceptor import Acceptor, Guest

MOST_KNOWN: Final = 256
HANDSHAKE_S: Final = 5.0
REST_S: Final = 15.0
"""A connection that is idle for this long is closed."""
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Server(web.Server):
    """Signals when a connection has ended."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(
            answer,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=REST_S,
            lingering_time=1.0,
            max_headers=64,
            auto_decompress=False,
        )
        self.over: dict[web.RequestHandler, asyncio.Event] = {}

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if (over := self.over.get(handler)) is not None:
            over.set()


class Connections:
    def __init__(self, address: str, *, tls: ssl.SSLContext | None = None) -> None:
        """`address` is `host:port`; port 0 selects a free one."""
        host, _, port = address.rpartition(":")
        self._tls = tls
        self._acceptor = Acceptor(host.strip("[]"), int(port), self._serve)
        self._server: _Server | None = None
        self._guests: dict[web.RequestHandler, Guest] = {}
        self._known = 0

    @property
    def port(self) -> int:
        return self._acceptor.port

    async def open(self, answer: Answer) -> None:
        """Raises `OSError`, or `UnicodeError` for an invalid host name."""
        self._server = _Server(answer)
        await self._acceptor.open()

    async def close(self) -> None:
        await self._acceptor.close()
        if self._server is not None:
            await self._server.shutdown(1.0)
        await self._acceptor.abort()

    def know(self, request: web.BaseRequest) -> bool:
        """Records that a connection is a viewer's and no guest any more; False if there are too many of these."""
        handler = request.protocol
        if handler not in self._guests:
            return True
        if self._known >= MOST_KNOWN:
            return False
        self._guests.pop(handler).known()
        self._known += 1
        return True

    async def _serve(self, guest: Guest) -> None:
        server = self._server
        if server is None:  # nothing is accepted before it is open
            return
        transport, handler = await asyncio.get_running_loop().connect_accepted_socket(
            server, guest.sock, ssl=self._tls, ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_S
        )
        over = server.over[handler] = asyncio.Event()
        self._guests[handler] = guest
        try:
            if not transport.is_closing():
                await over.wait()
        finally:
            del server.over[handler]
            if self._guests.pop(handler, None) is None:
                self._known -= 1
            transport.abort()
