"""The latest facts, shared by all viewers, and a signal when they change."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

from partage_ui.facts import Facts

WATCHED_S: Final = 60.0
"""For this long after a view, brokers are queried as often as during one."""


class Board:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.version = 0
        self._news = asyncio.Event()
        self._looked_at = -WATCHED_S
        self._spent_s = 0.0

    def put(self, facts: Facts) -> None:
        self.facts = facts
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()

    async def newer(self, than: int, *, within_s: float) -> int:
        """Returns the version as soon as it is newer, or after a while."""
        if self.version <= than:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._news.wait()
        return self.version

    def look(self) -> Facts:
        """Returns the latest facts, and records that somebody views them."""
        self._looked_at = time.monotonic()
        return self.facts

    def spend(self, seconds: float) -> None:
        """Accounts for the processor time of a view."""
        self._spent_s += seconds

    def take_spent(self) -> float:
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s

    @property
    def is_watched(self) -> bool:
        return time.monotonic() - self._looked_at < WATCHED_S
