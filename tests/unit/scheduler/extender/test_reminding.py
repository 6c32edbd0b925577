"""kube-scheduler is reminded only of pods that fitted nowhere and fit now, and not too often."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import ApiServer
from partage_plugins.api import PodUid
from partage_plugins.errors import PluginBroken, PluginFailed
from partage_scheduler.api import StatusWriter
from partage_scheduler.authority import NotLeading, Obstacle
from partage_scheduler.extender.reminders import CONDITION, Reminder, UnschedulablePods
from partage_scheduler.objects import ApiPod
from rig.client.wait import patient
from support.fake_api import FakeApi, Refuse
from support.kube import beside
from support.scheduling import PODS, create_pod, stands
from unit.scheduler.extender.stage import a_pod

TRY_ALL_S = 300
"""Seconds after which kube-scheduler retries every pending pod."""


class World:
    """The environment of a reminder; time passes when the test says so."""

    def __init__(self, server: ApiServer) -> None:
        self.now = self._end = 0.0
        self._there, self._go_on = asyncio.Event(), asyncio.Event()
        self.room: set[PodUid] = set()
        self.placed: set[PodUid] = set()
        self.obstacle: Obstacle | None = None
        self.error: Exception | None = None
        self.ended, self.looks = Counter[str](), Counter[PodUid]()
        self.reminder = Reminder(
            StatusWriter(server),
            fits=self._fits,
            is_placed=self.placed.__contains__,
            obstacle=lambda: self.obstacle,
            ended=lambda outcome: self.ended.update([outcome]),
            clock=lambda: self.now,
            sleep=self._pass,
        )

    async def after(self, seconds: float) -> None:
        self._end = self.now + seconds
        self._there.clear()
        self._go_on.set()
        async with patient("the time is there"):
            await self._there.wait()

    def _fits(self, pod: ApiPod, _now: float) -> bool:
        self.looks[pod.uid] += 1
        if self.error is not None:
            raise self.error
        return pod.uid in self.room

    async def _pass(self, seconds: float) -> None:
        while seconds and self.now >= self._end:
            self._there.set()
            self._go_on.clear()
            await self._go_on.wait()
        self.now += seconds


@pytest.fixture
async def world(server: ApiServer) -> AsyncIterator[World]:
    world = World(server)
    async with beside(world.reminder.run()):
        yield world


def conditions(api: FakeApi, name: str = "p") -> list[str]:
    return [each.type for each in stands(api, name).status.conditions]


async def test_a_pod_that_fits_now_says_so(api: FakeApi, world: World) -> None:
    pod, other = create_pod(api), create_pod(api, "other")
    world.reminder.fits_nowhere(pod)
    world.reminder.fits_nowhere(other)
    await world.after(30)
    assert not api.count("PATCH")
    world.room.add(pod.uid)
    await world.after(3)
    assert world.ended == {"done": 1}
    assert conditions(api) == [CONDITION]
    assert not conditions(api, "other")


async def test_kube_scheduler_is_given_time_to_ask_by_itself(api: FakeApi, world: World) -> None:
    pod = create_pod(api)
    world.room.add(pod.uid)
    for _ in range(5):
        world.reminder.fits_nowhere(pod)
        await world.after(1)
    assert not world.looks


async def test_who_waits_for_something_else_is_reminded_of_less_and_less_often(api: FakeApi, world: World) -> None:
    pod = create_pod(api)
    world.room.add(pod.uid)
    world.reminder.fits_nowhere(pod)
    done = world.ended["done"]
    while world.now < TRY_ALL_S:
        await world.after(1)
        if world.ended["done"] > done:
            world.reminder.fits_nowhere(pod)  # it asked, and something else prevents the binding
            done = world.ended["done"]
    assert 3 <= done <= 8
    await world.after(2 * TRY_ALL_S)
    assert world.ended["done"] <= done + 2


async def test_who_has_a_place_is_not_spoken_of(api: FakeApi, world: World) -> None:
    fits, is_placed = create_pod(api), create_pod(api, "placed")
    world.room |= {fits.uid, is_placed.uid}
    world.reminder.fits_nowhere(fits)
    world.reminder.fits_nowhere(is_placed)
    world.reminder.fits_somewhere(fits.uid)
    world.placed.add(is_placed.uid)
    await world.after(60)
    assert not api.count("PATCH")
    assert not world.looks


async def test_who_is_gone_is_no_trouble(api: FakeApi, world: World) -> None:
    pod = create_pod(api)
    api.objects.delete(f"{PODS}/p")
    world.room.add(pod.uid)
    world.reminder.fits_nowhere(pod)
    await world.after(60)
    assert world.ended == {"gone": 1}


async def test_what_was_refused_is_said_later(api: FakeApi, world: World) -> None:
    pod = create_pod(api)
    api.expect(Refuse(429), method="PATCH", times=2)
    world.room.add(pod.uid)
    world.reminder.fits_nowhere(pod)
    await world.after(8)
    assert (world.ended["failed"], world.ended["done"]) == (2, 1)
    assert conditions(api) == [CONDITION]


async def test_nothing_is_said_while_nothing_may_be_decided(api: FakeApi, world: World) -> None:
    pod = create_pod(api)
    world.room.add(pod.uid)
    world.obstacle = NotLeading()
    world.reminder.fits_nowhere(pod)
    await world.after(60)
    assert not world.looks
    world.obstacle = None
    await world.after(2)
    assert world.ended["done"] == 1


async def test_a_plugin_that_fails_costs_nothing_but_the_look(api: FakeApi, world: World) -> None:
    pod = create_pod(api)
    world.room.add(pod.uid)
    world.error = PluginFailed("gpu", "partage_fits", "it raised")
    world.reminder.fits_nowhere(pod)
    await world.after(10)
    assert world.looks[pod.uid] > 2
    world.error = None
    await world.after(3)
    assert world.ended == {"done": 1}


async def test_a_plugin_that_is_broken_ends_it(api: FakeApi, server: ApiServer) -> None:
    world = World(server)
    world.error = PluginBroken("gpu", "partage_fits", "it failed again")
    world.reminder.fits_nowhere(create_pod(api))
    run = asyncio.create_task(world.reminder.run())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await world.after(10)
    with pytest.raises(PluginBroken):
        await run


@given(st.integers(1, 200))
def test_all_are_looked_at_in_turn(number: int) -> None:
    away, pods = UnschedulablePods(), [a_pod(f"p{each}") for each in range(number)]
    for pod in pods:
        away.told(pod, 0)
    looked, now = Counter[PodUid](), 0.0
    while len(looked) < number:
        now += 1
        found = away.due(now)
        assert len(found) <= 20
        looked.update(pod.uid for pod in found)
        assert now <= number / 20 + 3
    assert set(looked.values()) <= {1, 2}


def test_whom_nobody_asks_about_any_more_is_forgotten() -> None:
    away = UnschedulablePods()
    away.told(a_pod(), 0)
    assert away.due(2 * TRY_ALL_S)
    assert not away.due(2 * TRY_ALL_S + 10)
    assert not away.due(2 * TRY_ALL_S + 20)


def test_no_more_are_kept_than_so_many() -> None:
    away = UnschedulablePods()
    for number in range(10_001):
        away.told(a_pod(f"p{number}"), 0)
    seen = {pod.uid for now in range(10, 700) for pod in away.due(now)}
    assert len(seen) == 10_000
    assert a_pod("p0").uid not in seen
