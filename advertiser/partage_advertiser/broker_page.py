"""The page `/broker` of the advertiser's port: what the node's broker tells of cards and containers, as it wrote it.

The broker has no port of its own unasked, and answers root on its node alone. The advertiser is there, is root and has
a port; so `partage top` reads all nodes through the API server. The line is passed on and not read: the broker and who
asks may be newer. The broker, which has work to do, is asked once a second at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.daemon.web import Response
from partage_plugins.vocabulary.places import BROKER_SOCKET

PATH: Final = "/broker"
MOST_BYTES: Final = 16 << 20
"""The most that a broker tells."""
_WITHIN_S: Final = 3.0
_FRESH_S: Final = 1.0
_QUESTION: Final = b'{"ask":"tell"}\n'
_JSON: Final = "application/json"


class BrokerPage:
    """Answers those who ask; of many at once one asks the broker."""

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
