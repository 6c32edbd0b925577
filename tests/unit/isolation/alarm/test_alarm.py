"""An alarm rings once for each time that it is set, never before, and for the last time alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from partage_isolation.wire.alarm import Alarm

MS = 1_000_000
WITHIN_S = 20.0


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), WITHIN_S))


class Rung:
    def __init__(self) -> None:
        self.times: list[int] = []
        self.event = asyncio.Event()

    def __call__(self) -> None:
        self.times.append(time.monotonic_ns())
        self.event.set()

    async def next(self) -> None:
        await self.event.wait()
        self.event.clear()


def test_it_rings_at_its_time_and_not_before() -> None:
    async def scene() -> None:
        rung = Rung()
        alarm = Alarm(rung)
        for after in (300_000, 2 * MS, 0, -5 * MS):
            at = time.monotonic_ns() + after
            alarm.set(at)
            await rung.next()
            assert rung.times[-1] >= at
        assert len(rung.times) == 4
        alarm.close()

    run(scene)


def test_what_it_is_set_to_last_counts() -> None:
    async def scene() -> None:
        rung = Rung()
        alarm = Alarm(rung)
        now = time.monotonic_ns()
        alarm.set(now + 1 * MS)
        alarm.set(now + 3600_000 * MS)
        alarm.set(None)
        alarm.set(now + 20 * MS)
        await rung.next()
        assert rung.times[0] >= now + 20 * MS
        await asyncio.sleep(0.03)
        assert len(rung.times) == 1
        alarm.close()

    run(scene)


def test_the_same_time_again_after_it_rang_rings_again() -> None:
    async def scene() -> None:
        rung = Rung()
        alarm = Alarm(rung)
        at = time.monotonic_ns()
        for _ in range(3):
            alarm.set(at)
            await rung.next()
        alarm.close()

    run(scene)


def test_it_may_be_set_while_it_rings_and_closed_before_it_does() -> None:
    async def scene() -> None:
        done = asyncio.Event()
        rings = list[int]()

        def ring() -> None:
            rings.append(time.monotonic_ns())
            if len(rings) < 5:
                alarm.set(rings[-1] + 100_000)
            else:
                done.set()

        alarm = Alarm(ring)
        alarm.set(0)
        await done.wait()
        alarm.set(time.monotonic_ns() + MS)
        alarm.close()
        await asyncio.sleep(0.01)
        assert len(rings) == 5

    run(scene)
