"""Whatever the API server does: no card is over-committed, no pod is bound twice, and no pod is lost.

Requests fail with 409, 410, 429 and 5xx, before or after they were carried out, hang, or are carried out long after the
client gave up; watches are cut at any byte; events come twice and out of order. Meanwhile pods come, end and are
deleted, and the scheduler is killed and starts anew from what stands on the pods.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.fake_api import FakeApi
from support.fake_faults import Storm
from support.kube import until
from support.scheduler_stage import CARDS, Truth, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS

pytestmark = pytest.mark.slow

NODES = 3
MILLIS = (250, 300, 500, 600, 1000)
LATE_S = 0.5
"""Longer than any request is late: a scheduler that takes over waits for that, by its Lease."""


class Users:
    """Pods come, end and go, as a seed says."""

    def __init__(self, api: FakeApi, seed: int) -> None:
        self._api, self._random = api, random.Random(seed)  # noqa: S311
        self._numbers = iter(range(1_000_000))

    def act(self) -> None:
        chance, names = self._random.random(), list(self._names())
        if chance < 0.6 or not names:
            self._create()
        elif chance < 0.8:
            self._api.objects.delete(f"{PODS}/{self._random.choice(names)}")
        elif chance < 0.9:
            self._api.objects.begin_deletion(f"{PODS}/{self._random.choice(names)}")
        else:
            self._end(self._random.choice(names))

    def _create(self) -> None:
        add_pod(self._api, f"p{next(self._numbers)}", self._random.choice(MILLIS))

    def _end(self, name: str) -> None:
        path = f"{PODS}/{name}"
        if self._api.objects.get(path)["spec"].get("nodeName"):
            self._api.objects.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})

    def leave_room(self) -> None:
        """What is left fits, however it was placed: all may be placed in the end."""
        for name in list(self._names()):
            pod = self._api.objects.get(f"{PODS}/{name}")
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                self._api.objects.delete(f"{PODS}/{name}")
        for name in list(self._names())[CARDS * NODES :]:
            self._api.objects.delete(f"{PODS}/{name}")

    def _names(self) -> Iterator[str]:
        return (pod["metadata"]["name"] for pod in self._api.objects.select(PODS, {}))


async def lived_through(root: Path, seed: int, strength: float, lives: list[int]) -> None:
    async with FakeApi() as api:
        own = settings_below(root, elect=False, in_flight=8)
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
            await until(lambda: not unbound(api), within_s=30)
        truth.check()


@settings(
    max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow]
)
@given(
    seed=st.integers(0, 1 << 32),
    strength=st.floats(0.05, 0.6),
    lives=st.lists(st.integers(50, 250), min_size=1, max_size=2),
)
def test_nothing_is_given_twice_and_nobody_is_lost(seed: int, strength: float, lives: list[int]) -> None:
    with TemporaryDirectory() as root:
        asyncio.run(lived_through(Path(root), seed, strength, lives))
