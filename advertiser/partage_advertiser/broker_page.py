"""The page `/broker` on the advertiser's port: the broker's report on cards and containers, passed through unchanged.

By default the broker has no port of its own, and answers only root on its node. The advertiser runs there as root and
has a port, so `partage top` reads all nodes through the API server. The line is not parsed, since the broker and the
client may be newer. The broker is queried at most once a second, to keep its load low.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.daemon.web import Response
from partage_plugins.api.places import BROKER_SOCKET

PATH: Final = "/broker"
MOST_BYTES: Final = 16 << 20
"""The maximum size of the broker's report."""
_WITHIN_S: Final = 3.0
_FRESH_S: Final = 1.0
_QUESTION: Final = b'{"ask":"tell"}\n'
_JSON: Final = "application/json"


class BrokerPage:
    """Serves the page; of concurrent requests only one queries the broker."""

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = root / BROKER_SOCKET, clock
        self._asking = asyncio.Lock()
        self._told: Response | None = None
        self._told_at = 0.0

    async def __call__(self) -> Response:
        async with self._asking:
            if self._told is None or self._clock() - self._told_at >= _FRESH_S:
                self._told, self._told_at = await self._asked(), self._clock()
            return self._told

    async def _asked(self) -> Response:
        try:
            async with asyncio.timeout(_WITHIN_S):
                return Response(200, await self._line(), _JSON)
        except TimeoutError:
            return _away(f"the broker did not answer within {_WITHIN_S:g} s")
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            return _away(f"no broker answers: {getattr(error, 'strerror', None) or error}")

    async def _line(self) -> bytes:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=MOST_BYTES)
        try:
            writer.write(_QUESTION)
            return await reader.readuntil(b"\n")
        finally:
            writer.close()


def _away(why: str) -> Response:
    return Response(503, f"{why}\n".encode())
