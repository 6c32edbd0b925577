"""The one port where a daemon is asked: /metrics, /healthz, /readyz.

A server of our own on the daemon's loop, since all it must do is answer three GETs; a thread for each connection, as
libraries bring, would let a hostile scraper fill the process. Every conversation has a bounded request, a deadline and
one answer; of too many at once the newest are dropped. It stands before the service starts and until it has stopped.

A port that another process has ends the start. A daemon that takes over from a predecessor, which still has the port,
waits for it instead: what it is there for must not.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self

import structlog

from partage_base.daemon.errors import CannotListen
from partage_base.daemon.exposition import CONTENT_TYPE
from partage_base.daemon.health import Health
from partage_base.daemon.metrics import Metrics

MOST_REQUEST_BYTES: Final = 8192
MOST_CONVERSATIONS: Final = 16
DEADLINE_S: Final = 5.0
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


class Answer(NamedTuple):
    """What a request gets."""

    status: int
    body: bytes
    content_type: str = _PLAIN


class Web:
    """The server; an async context manager that is silent where `address` is empty."""

    def __init__(self, address: str, *, metrics: Metrics, health: Health, waits: bool = False) -> None:
        """`waits`: while another process has the port, this one tries again."""
        self._address = address
        self._metrics = metrics
        self._health = health
        self._server: asyncio.Server | None = None
        self._waits = waits
        self._waiting: asyncio.Task[None] | None = None
        self._conversations = 0
        self.port = 0  # the one that was opened, where the address asked for any

    async def __aenter__(self) -> Self:
        """Listens; raises `CannotListen`."""
        if self._address:
            try:
                await self._listen()
            except OSError as error:
                if not (self._waits and error.errno == errno.EADDRINUSE):
                    raise self._cannot(error) from error
                _log.warning("metrics are served as soon as nobody else has the port", address=self._address)
                self._waiting = asyncio.create_task(self._listen_later())
            except UnicodeError as error:
                raise self._cannot(error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listens no more; conversations have their own deadline."""
        if self._waiting:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])
        if self._server:
            self._server.close()

    async def _listen(self) -> None:
        host, _, port = self._address.rpartition(":")
        self._server = await asyncio.start_server(self._converse, host.strip("[]"), int(port), limit=MOST_REQUEST_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        _log.info("metrics are served", address=f"{host}:{self.port}")

    async def _listen_later(self) -> None:
        while not self._server:
            await asyncio.sleep(_TRY_EVERY_S)
            with contextlib.suppress(OSError):
                await self._listen()

    def _cannot(self, error: OSError | UnicodeError) -> CannotListen:
        why = getattr(error, "strerror", None) or error
        return CannotListen(f"cannot listen on {self._address}: {why}; change metrics_address")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._conversations += 1
        try:
            if self._conversations <= MOST_CONVERSATIONS:
                await self._reply(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the asker's own fault, and not worth a line that it could fill the log with
        finally:
            self._conversations -= 1
            writer.transport.abort()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(DEADLINE_S):
            request = await reader.readuntil(b"\r\n\r\n")
            writer.write(_encoded(self._answer(request), head_only=request.startswith(b"HEAD ")))
            writer.write_eof()
            while await reader.read(MOST_REQUEST_BYTES):
                pass  # until the asker has it all and closes: an abort would overtake what is under way

    def _answer(self, request: bytes) -> Answer:
        method, _, rest = request.partition(b"\r\n")[0].partition(b" ")
        target, _, protocol = rest.partition(b" ")
        if not protocol.startswith(b"HTTP/1."):
            return Answer(400, b"only HTTP/1 is spoken here\n")
        if method not in {b"GET", b"HEAD"}:
            return Answer(405, b"only GET and HEAD are answered\n")
        try:
            return self._page(target.partition(b"?")[0])
        except Exception:  # noqa: BLE001  (whatever a collector raises costs this page alone)
            _log.exception("a page could not be made", path=target.decode(errors="replace"))
            return Answer(500, b"the page could not be made; see the log\n")

    def _page(self, path: bytes) -> Answer:
        match path:
            case b"/metrics":
                return Answer(200, self._metrics.page(), CONTENT_TYPE)
            case b"/healthz":
                return _judged(self._health.against_alive)
            case b"/readyz":
                return _judged(self._health.against_ready)
            case _:
                return Answer(404, b"there are /metrics, /healthz and /readyz\n")


def _judged(against: Mapping[str, str]) -> Answer:
    lines = [f"{name}: {why}\n" for name, why in sorted(against.items())]
    return Answer(503, "".join(lines).encode(errors="replace")) if lines else Answer(200, b"ok\n")


def _encoded(answer: Answer, *, head_only: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else answer.body)
