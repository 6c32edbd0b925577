"""For any faults of the API server, no card is over-committed, no pod is bound twice, and no pod is lost.

Requests fail with 409, 410, 429 and 5xx, before or after they were carried out, hang, or are carried out long after the
client gave up; watches and streamed lists are cut at any byte; events arrive twice and out of order. Meanwhile pods are
created, end and are deleted, nodes are deleted and return with other cards, and the scheduler is killed and restarts
from the pods' annotations, or two of them compete for one lead.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from partage_plugins.api.keys import INVENTORY
from partage_scheduler.errors import LeadLost
from support.fake_api import FakeApi, Lists
from support.fake_faults import Storm
from support.kube import until
from support.scheduler_stage import (
    CARDS,
    LEASES,
    Truth,
    add_node,
    add_pod,
    inventory_text,
    scheduler,
    settings_below,
    unbound,
)
from support.scheduler_stage import NODES as NODES_PATH
from support.scheduling import PODS

pytestmark = pytest.mark.slow

NODES = 3
MILLIS = (250, 300, 500, 600, 1000)
PRIORITIES = (0, 0, 0, 5, 9)
"""Higher priorities preempt lower ones."""
LEASE: Final[Mapping[str, float]] = {"lease_s": 2.0, "renew_s": 1.2, "retry_s": 0.2}
FIGHT_S = 4.0
FOR_EVER_S = 3600.0
"""No advertiser renews the nodes' heartbeats, and a storm may take a while."""
LATE_S = 0.5
"""Longer than any request is delayed: by its Lease, a scheduler that takes over waits this long."""


class Users:
    """Users who create, end and delete pods, by a seed."""

    def __init__(self, api: FakeApi, seed: int) -> None:
        self._api, self._random = api, random.Random(seed)  # noqa: S311
        self._numbers = iter(range(1_000_000))

    def act(self) -> None:
        chance, names = self._random.random(), list(self._names())
        if chance < 0.05:
            self._change_node(f"n{self._random.randrange(NODES)}")
        elif chance < 0.6 or not names:
            self._create()
        elif chance < 0.8:
            self._api.objects.delete(f"{PODS}/{self._random.choice(names)}")
        elif chance < 0.9:
            self._api.objects.begin_deletion(f"{PODS}/{self._random.choice(names)}")
        else:
            self._end(self._random.choice(names))

    def _create(self) -> None:
        name, milli = f"p{next(self._numbers)}", self._random.choice(MILLIS)
        add_pod(self._api, name, milli, priority=self._random.choice(PRIORITIES))

    def _change_node(self, name: str) -> None:
        """Replace the node by one of the same name, or change its cards; its pods stay and keep what they hold."""
        if self._random.random() < 0.5:
            self._api.objects.delete(f"{NODES_PATH}/{name}")
            self._api.objects.delete(f"{LEASES}/{name}")
            add_node(self._api, name)
        else:
            self.tell_cards(name, self._random.choice(("ok", "lost", "degraded: no room for more errors")))

    def tell_cards(self, name: str, health: str) -> None:
        notes = {INVENTORY: inventory_text(name, health=health)}
        self._api.objects.patch(f"{NODES_PATH}/{name}", {"metadata": {"annotations": notes}})

    def _end(self, name: str) -> None:
        path = f"{PODS}/{name}"
        if self._api.objects.get(path)["spec"].get("nodeName"):
            self._api.objects.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})

    def leave_room(self) -> None:
        """Reduce the pods to as many as fit in any placement, so that all can be placed in the end."""
        for number in range(NODES):
            self.tell_cards(f"n{number}", "ok")
        for name in list(self._names()):
            pod = self._api.objects.get(f"{PODS}/{name}")
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                self._api.objects.delete(f"{PODS}/{name}")
        for name in list(self._names())[CARDS * NODES :]:
            self._api.objects.delete(f"{PODS}/{name}")

    def _names(self) -> Iterator[str]:
        return (pod["metadata"]["name"] for pod in self._api.objects.select(PODS, {}))


async def lived_through(root: Path, seed: int, strength: float, lives: list[int], lists: Lists) -> None:
    async with FakeApi() as api:
        api.lists = lists
        own = settings_below(root, elect=False, in_flight=8, silent_after_s=FOR_EVER_S)
        for number in range(NODES):
            add_node(api, f"n{number}")
        users, truth = Users(api, seed), Truth(api, root)
        api.weather = storm = Storm(seed, strength=strength)
        for acts in lives:
            async with scheduler(api, own, deadline_s=0.15, doubt_s=LATE_S):
                for _ in range(acts):
                    users.act()
                    await asyncio.sleep(0.004)
            await asyncio.sleep(LATE_S)
        truth.check()
        users.leave_room()
        storm.strength = 0.0
        async with scheduler(api, own):
            await until(lambda: not unbound(api))
        truth.check()


async def fought_through(root: Path, seed: int, strength: float) -> None:
    """Two replicas, each killed now and then; one that loses the lead exits by itself and is restarted."""
    async with FakeApi() as api:
        own = settings_below(root, in_flight=8, silent_after_s=FOR_EVER_S, **LEASE)
        for number in range(NODES):
            add_node(api, f"n{number}")
        users, truth, chance = Users(api, seed), Truth(api, root), random.Random(seed)  # noqa: S311
        api.weather = storm = Storm(seed, strength=strength)

        async def replica() -> None:
            while True:
                async with scheduler(api, own, deadline_s=0.15, doubt_s=LATE_S) as running:
                    until_s = time.monotonic() + chance.uniform(1, 8)
                    while not running.failures and time.monotonic() < until_s:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                    assert all(isinstance(failure, LeadLost) for failure in running.failures), running.failures
                    running.failures.clear()

        async with asyncio.TaskGroup() as group:
            replicas = [group.create_task(replica()) for _ in range(2)]
            until_s = time.monotonic() + FIGHT_S
            while time.monotonic() < until_s:
                users.act()
                await asyncio.sleep(0.02)
            for each in replicas:
                each.cancel()
        await asyncio.sleep(LATE_S)
        truth.check()
        users.leave_room()
        storm.strength = 0.0
        async with scheduler(api, settings_below(root, silent_after_s=FOR_EVER_S, elect=False)):
            await until(lambda: not unbound(api))
        truth.check()


@pytest.mark.parametrize("lists", [Lists.STREAMED, Lists.REFUSED])
@settings(
    max_examples=2, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow]
)
@given(
    seed=st.integers(0, 1 << 32),
    strength=st.floats(0.05, 0.6),
    lives=st.lists(st.integers(50, 200), min_size=1, max_size=2),
)
def test_nothing_is_given_twice_and_nobody_is_lost(lists: Lists, seed: int, strength: float, lives: list[int]) -> None:
    with TemporaryDirectory() as root:
        asyncio.run(lived_through(Path(root), seed, strength, lives, lists))


@pytest.mark.parametrize(("seed", "strength"), [(2, 0.3)])
def test_two_that_fight_for_the_lead_give_nothing_twice(seed: int, strength: float, tmp_path: Path) -> None:
    asyncio.run(fought_through(tmp_path, seed, strength))
