"""Waiting for an event for some time at most, as loops do that work when something happens or is due."""

from __future__ import annotations

import asyncio


async def set_within(event: asyncio.Event, within_s: float | None) -> bool:
    """Whether it was set in time; None waits as long as that takes."""
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False
