"""What happens, told to all who listen. A listener that is too slow is dropped, and hears so."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.wire.messages import Event

_MOST_WAITING: Final = 1024


class Listener:
    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(_MOST_WAITING)
        self._is_late = False

    def put(self, event: Event) -> None:
        if self._waiting.full():
            self._is_late = True
        else:
            self._waiting.put_nowait(event)

    async def next(self) -> Event:
        """Raises `Objection` once it has missed one."""
        if self._is_late and self._waiting.empty():
            raise Objection("too-many", "events came faster than they were read, and some are lost; listen once more")
        return await self._waiting.get()


class News:
    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    @contextmanager
    def listener(self) -> Generator[Listener]:
        one = Listener()
        self._listeners.add(one)
        try:
            yield one
        finally:
            self._listeners.discard(one)

    def tell(self, event: Event) -> None:
        for each in self._listeners:
            each.put(event)
