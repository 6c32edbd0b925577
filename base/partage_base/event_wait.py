"""Waiting for an event with a timeout, for loops that work on events and on time."""

from __future__ import annotations

import asyncio


async def set_within(event: asyncio.Event, within_s: float | None) -> bool:
    """Whether it was set in time; None waits without limit."""
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False
