"""Containers that are told to end: with a grace, which a person may shorten while it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from partage_cli.machine.manager.engine import Engine


class Halting:
    def __init__(self, engine: Engine, ids: Sequence[str], grace_s: int) -> None:
        self._engine, self._ids, self._grace_s = engine, ids, grace_s
        self._stops: set[asyncio.Task[None]] = set()

    async def ended(self) -> None:
        """Once all have ended; raises `PeerError`."""
        self._begin()
        try:
            while pending := {stop for stop in self._stops if not stop.done()}:
                await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
                for stop in self._stops:
                    if stop.done():
                        stop.result()
        finally:
            for stop in self._stops:
                stop.cancel()
            await asyncio.gather(*self._stops, return_exceptions=True)

    def hurry(self, grace_s: int) -> None:
        """No longer than this, from now on."""
        if grace_s < self._grace_s:
            self._grace_s = grace_s
            self._begin()

    def _begin(self) -> None:
        for each in self._ids:
            self._stops.add(asyncio.create_task(self._engine.stop(each, grace_s=self._grace_s), name=f"stop {each}"))
