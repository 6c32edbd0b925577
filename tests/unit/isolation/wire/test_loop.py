"""An alarm fires once each time it is set, never early, and only for the last time set.

Deferrable work runs between packets, and containers take turns.
"""

from __future__ import annotations

import asyncio
import socket
import time
from functools import partial

from partage_isolation.wire.background_work import BackgroundWork, in_slices
from partage_isolation.wire.timer import Timer
from rig.client.wait import patient

MS = 1_000_000


class Rung:
    """An alarm that records when it fires."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.again = 0
        """How often it sets itself again when it fires."""
        self.event = asyncio.Event()
        self.timer = Timer(self.ring)

    def ring(self) -> None:
        self.times.append(time.monotonic_ns())
        if self.again:
            self.again -= 1
            self.timer.set(self.times[-1] + 100_000)
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
        rung.timer.set(at)
        await rung.next()
        assert rung.times[-1] >= at
    assert len(rung.times) == 5
    rung.timer.close()


async def test_what_it_is_set_to_last_counts() -> None:
    rung = Rung()
    now = time.monotonic_ns()
    for at in (now + 1 * MS, now + 3600_000 * MS, None, now + 20 * MS):
        rung.timer.set(at)
    await rung.next()
    assert rung.times[0] >= now + 20 * MS
    await asyncio.sleep(0.03)
    assert len(rung.times) == 1
    rung.timer.close()


async def test_it_may_be_set_while_it_rings_and_closed_before_it_does() -> None:
    rung = Rung()
    rung.again = 4
    rung.timer.set(0)
    await rung.next()
    rung.timer.set(time.monotonic_ns() + MS)
    rung.timer.close()
    await asyncio.sleep(0.01)
    assert len(rung.times) == 5


# ---- Deferred work ---------------------------------------------------------------------------------------------------


MANY = 200
AT_ONCE = 0.0
"""Each slice runs one piece of work."""


async def test_who_asks_something_is_answered_before_all_is_worked_off() -> None:
    loop, order, all_done = asyncio.get_running_loop(), list[str](), asyncio.Event()
    slices = BackgroundWork(AT_ONCE)
    here, there = socket.socketpair()

    def answer() -> None:
        here.recv(1)
        order.append("packet")

    with here, there:
        loop.add_reader(here, answer)
        for _ in range(MANY):
            slices.add("hostile", partial(order.append, "death"))
        slices.add("hostile", all_done.set)
        there.send(b"x")
        await all_done.wait()
        loop.remove_reader(here)
    assert order.index("packet") < 5
    assert order.count("death") == MANY


async def test_one_container_s_work_waits_for_no_crowd_of_another() -> None:
    slices, order, done = BackgroundWork(AT_ONCE), list[str](), asyncio.Event()
    for _ in range(MANY):
        slices.add("hostile", partial(order.append, "hostile"))
    slices.add("victim", partial(order.append, "victim"))
    slices.add("hostile", done.set)
    await done.wait()
    assert order.index("victim") == 1


async def test_one_piece_of_it_can_be_done_at_once() -> None:
    slices, order = BackgroundWork(AT_ONCE), list[int]()
    for number in range(3):
        slices.add("a", partial(order.append, number))
    assert slices.do_one("a")
    assert order == [0]
    assert not slices.do_one("b")
    slices.close()
    await asyncio.sleep(0)
    assert order == [0], "what is closed does nothing more"


async def test_steps_let_others_in_between() -> None:
    order = list[str]()

    async def other() -> None:
        order.append("other")

    task = asyncio.create_task(other())
    async for step in in_slices(["first", "second", "last"], AT_ONCE):
        order.append(step)
    await task
    assert order == ["first", "other", "second", "last"]
