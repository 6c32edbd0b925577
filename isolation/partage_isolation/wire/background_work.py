"""Deferrable work, done in small slices between packets, round-robin over containers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
SLICE_S: Final = 0.001
"""Length of a slice, after which pending requests are handled first."""


class BackgroundWork:
    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._slice_s = slice_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}
        """In order of service."""
        self._next: asyncio.Handle | None = None

    def close(self) -> None:
        self._waiting.clear()
        if self._next is not None:
            self._next.cancel()

    def add(self, whose: Hashable, work: Callable[[], None]) -> None:
        self._waiting.setdefault(whose, deque()).append(work)
        self._go_on()

    def do_one(self, whose: Hashable) -> bool:
        """Run its oldest item now; False if there is none."""
        waiting = self._waiting.pop(whose, None)
        if waiting is None:
            return False
        work = waiting.popleft()
        if waiting:
            self._waiting[whose] = waiting
        work()
        return True

    def _go_on(self) -> None:
        if self._waiting and self._next is None:
            self._next = self._loop.call_soon(self._some)

    def _some(self) -> None:
        self._next, until = None, time.monotonic() + self._slice_s
        try:
            while self._waiting:
                self.do_one(next(iter(self._waiting)))
                if time.monotonic() >= until:
                    return
        finally:
            self._go_on()


async def in_slices(steps: Iterable[T], slice_s: float = SLICE_S) -> AsyncIterator[T]:
    """Yield the items, and let other tasks run between slices."""
    until = time.monotonic() + slice_s
    for step in steps:
        yield step
        if time.monotonic() >= until:
            await asyncio.sleep(0)
            until = time.monotonic() + slice_s
