"""An alarm rings once for each time that it is set, never before, and for the last time alone."""

from __future__ import annotations

import asyncio
import time

from partage_isolation.wire.alarm import Alarm
from rig.client.wait import patient

MS = 1_000_000


class Rung:
    """An alarm that notes when it rings."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.again = 0
        """How often it sets itself while it rings."""
        self.event = asyncio.Event()
        self.alarm = Alarm(self.ring)

    def ring(self) -> None:
        self.times.append(time.monotonic_ns())
        if self.again:
            self.again -= 1
            self.alarm.set(self.times[-1] + 100_000)
        else:
            self.event.set()

    async def next(self) -> None:
        async with patient("it rings"):
            await self.event.wait()
        self.event.clear()


async def test_it_rings_at_its_time_and_not_before() -> None:
    rung = Rung()
    past = time.monotonic_ns()
    for at in (past + 300_000, past + 2 * MS, past, past, past - 5 * MS):
        rung.alarm.set(at)
        await rung.next()
        assert rung.times[-1] >= at
    assert len(rung.times) == 5
    rung.alarm.close()


async def test_what_it_is_set_to_last_counts() -> None:
    rung = Rung()
    now = time.monotonic_ns()
    for at in (now + 1 * MS, now + 3600_000 * MS, None, now + 20 * MS):
        rung.alarm.set(at)
    await rung.next()
    assert rung.times[0] >= now + 20 * MS
    await asyncio.sleep(0.03)
    assert len(rung.times) == 1
    rung.alarm.close()


async def test_it_may_be_set_while_it_rings_and_closed_before_it_does() -> None:
    rung = Rung()
    rung.again = 4
    rung.alarm.set(0)
    await rung.next()
    rung.alarm.set(time.monotonic_ns() + MS)
    rung.alarm.close()
    await asyncio.sleep(0.01)
    assert len(rung.times) == 5
