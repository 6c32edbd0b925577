"""The HTTP server of a daemon: /metrics, /healthz, /readyz, and pages of its own.

It is a small server of our own on the daemon's loop, since it only answers a few GETs; the usual libraries start a
thread for each connection, with which a hostile scraper could fill the process. Every connection has a bounded request,
a deadline and one response. If there are too many connections, `acceptor` closes the oldest; if too many bytes of
responses are unread, the oldest of those connections is closed too. So a probe, which sends its request at once and
reads little, is always answered. The server runs before the service starts and until it has stopped.

If the address can't be listened on, the start fails. A daemon that takes over from a predecessor, which still has the
port, goes on and retries instead: its service must not wait for a metrics port.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self

import structlog

from partage_base.acceptor import Acceptor, Guest
from partage_base.daemon.errors import CannotListen
from partage_base.daemon.exposition import CONTENT_TYPE
from partage_base.daemon.health import Health
from partage_base.daemon.metrics import Metrics

MOST_REQUEST_BYTES: Final = 8192
MOST_HELD_BYTES: Final = 16 << 20
"""Limit on unread responses; one that is larger may be held alone."""
DEADLINE_S: Final = 5.0
METRICS: Final = "metrics"
"""The condition that the address can be listened on."""
_TRY_EVERY_S: Final = 1.0

_PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_log = structlog.get_logger()


class Response(NamedTuple):
    status: int
    body: bytes
    content_type: str = _PLAIN


Page = Callable[[], Awaitable[Response]]
"""Renders one of a daemon's own pages; it must be done within `DEADLINE_S`."""
_NONE: Final[Mapping[str, Page]] = {}


class Web:
    """The server, as an async context manager; serves nothing if `address` is empty."""

    def __init__(
        self, address: str, *, metrics: Metrics, health: Health, waits: bool = False, pages: Mapping[str, Page] = _NONE
    ) -> None:
        """`waits`: if the address can't be listened on, the daemon runs without it and listening is retried.

        `pages` are the daemon's own, by path.
        """
        self._address = address
        self._metrics = metrics
        self._health = health
        self._pages = pages
        self._acceptor: Acceptor | None = None
        self._waits = waits
        self._waiting: asyncio.Task[None] | None = None
        self._held: dict[Guest, int] = {}
        self.port = 0  # the port that was opened, if the address has port 0

    async def __aenter__(self) -> Self:
        if self._address:
            try:
                await self._listen()
            except (OSError, UnicodeError) as error:
                cannot = self._cannot(error)
                if not self._waits:
                    raise cannot from error
                self._health.unready(METRICS, str(cannot))
                _log.warning("cannot serve metrics yet; will retry", why=str(cannot))
                self._waiting = asyncio.create_task(self._listen_later())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops listening and closes all connections."""
        if self._waiting:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])
        if self._acceptor:
            await self._acceptor.abort()

    async def _listen(self) -> None:
        host, _, port = self._address.rpartition(":")
        acceptor = Acceptor(host.strip("[]"), int(port), self._converse)
        await acceptor.open()
        self._acceptor, self.port = acceptor, acceptor.port
        _log.info("metrics are served", address=f"{host}:{self.port}")

    async def _listen_later(self) -> None:
        while not self._acceptor:
            await asyncio.sleep(_TRY_EVERY_S)
            with contextlib.suppress(OSError, UnicodeError):
                await self._listen()
                self._health.ready(METRICS)

    def _cannot(self, error: OSError | UnicodeError) -> CannotListen:
        why = getattr(error, "strerror", None) or error
        return CannotListen(f"cannot listen on {self._address}: {why}; change metrics_address")

    async def _converse(self, guest: Guest) -> None:
        """Serves one connection, which stays a guest of the acceptor: every response is short."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MOST_REQUEST_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, guest.sock)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._reply(guest, reader, writer)
        finally:
            self._held.pop(guest, None)
            transport.abort()

    async def _reply(self, guest: Guest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(DEADLINE_S):
            request = await reader.readuntil(b"\r\n\r\n")
            answer = _encoded(await self._answer(request), head_only=request.startswith(b"HEAD "))
            self._hold(guest, len(answer))
            writer.write(answer)
            writer.write_eof()
            await writer.drain()
            self._held.pop(guest, None)
            while await reader.read(MOST_REQUEST_BYTES):
                pass  # until the client has read all and closes: an abort would drop data in flight

    def _hold(self, guest: Guest, size: int) -> None:
        while self._held and sum(self._held.values()) + size > MOST_HELD_BYTES:
            oldest = next(iter(self._held))
            del self._held[oldest]
            oldest.leave()
        self._held[guest] = size

    async def _answer(self, request: bytes) -> Response:
        method, _, rest = request.partition(b"\r\n")[0].partition(b" ")
        target, _, protocol = rest.partition(b" ")
        if not protocol.startswith(b"HTTP/1."):
            return Response(400, b"only HTTP/1 is spoken here\n")
        if method not in {b"GET", b"HEAD"}:
            return Response(405, b"only GET and HEAD are answered\n")
        try:
            return await self._page(target.partition(b"?")[0])
        except Exception:  # noqa: BLE001  (whatever a collector raises costs this page alone)
            _log.exception("cannot render the page", path=target.decode(errors="replace"))
            return Response(500, b"the page could not be made; see the log\n")

    async def _page(self, path: bytes) -> Response:
        match path:
            case b"/metrics":
                return Response(200, self._metrics.page(), CONTENT_TYPE)
            case b"/healthz":
                return _judged(self._health.against_alive)
            case b"/readyz":
                return _judged(self._health.against_ready)
            case _ if (page := self._pages.get(path.decode(errors="replace"))) is not None:
                return await page()
            case _:
                return Response(404, f"there are /metrics, /healthz, /readyz{_listed(self._pages)}\n".encode())


def _listed(pages: Mapping[str, Page]) -> str:
    return "".join(f", {path}" for path in sorted(pages))


def _judged(against: Mapping[str, str]) -> Response:
    lines = [f"{name}: {why}\n" for name, why in sorted(against.items())]
    return Response(503, "".join(lines).encode(errors="replace")) if lines else Response(200, b"ok\n")


def _encoded(answer: Response, *, head_only: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else answer.body)
