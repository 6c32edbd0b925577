"""A stream of pods at a steady rate; each ends, or is deleted, a while after it was placed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from partage_base.kube import ApiServer, KubeError, NotFound, pod_path, pod_status_path, pods_path
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI, GPUS
from partage_scheduler.objects import ApiPod
from rig.client.manifests import a_container, a_pod
from rig.identity.people import TEAM

AT_ONCE: Final = 64
TICK_S: Final = 0.05
GRACE_S: Final = 1.0
"""A gracefully deleted pod exists for this long."""
MILLIS: Final = ("125", "250", "250", "500", "500", "500", "700", "1000")
GIB: Final = 1 << 30


class Users:
    def __init__(self, server: ApiServer, chance: random.Random, *, life_s: float) -> None:
        self._server, self._chance, self._life_s = server, chance, life_s
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self.failures = 0
        """Failures of our own requests, which a loaded API server may refuse."""

    async def come(self, rate: float, until: float) -> None:
        """Create pods at that rate until then; late ones are created as soon as possible."""
        began, made = time.monotonic(), 0
        while (now := time.monotonic()) < until:
            for _ in range(int((now - began) * rate) - made):
                made += 1
                await self._slots.acquire()
                self._start(self._come())
            await asyncio.sleep(TICK_S)

    def placed(self, pod: ApiPod) -> None:
        self._start(self._live(pod.name), slot=False)

    def orphaned(self, pod: ApiPod) -> None:
        """Its node is gone, so it is collected."""
        self._start(self._gone(pod.name, at_once=True), slot=False)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, None], *, slot: bool = True) -> None:
        task = asyncio.create_task(self._tried(work, slot=slot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tried(self, work: Coroutine[Any, Any, None], *, slot: bool) -> None:
        try:
            await work
        except NotFound:
            pass
        except KubeError:
            self.failures += 1
        finally:
            if slot:
                self._slots.release()

    async def _come(self) -> None:
        self._number += 1
        name = f"p{self._number:07}"
        await self._server.create(pods_path(TEAM), self._manifest(name), msgspec.Raw)
        if self._chance.random() < 0.03:  # the user changed their mind
            await self._gone(name, at_once=True)

    async def _live(self, name: str) -> None:
        await asyncio.sleep(self._chance.expovariate(1 / self._life_s))
        if self._chance.random() < 0.6:
            body = {"status": {"phase": "Succeeded"}}
            await self._server.patch(pod_status_path(TEAM, name), body, msgspec.Raw)
            await asyncio.sleep(1)
            await self._gone(name, at_once=True)
        else:
            await self._gone(name, at_once=self._chance.random() < 0.5)

    async def _gone(self, name: str, *, at_once: bool) -> None:
        """Deleted with a grace period, like running pods: it exists for that long and holds its grants."""
        if not at_once:
            await self._server.delete(pod_path(TEAM, name))
            await asyncio.sleep(GRACE_S)
        await self._server.delete(f"{pod_path(TEAM, name)}?gracePeriodSeconds=0")

    def _manifest(self, name: str) -> dict[str, Any]:
        chance = self._chance
        if chance.random() < 0.1:
            return a_pod(name, scheduler="partage-scheduler", requests={"cpu": "500m"})
        limits = {"cpu": "100m", GPU_MILLI: chance.choice(MILLIS)}
        if chance.random() < 0.05:
            limits |= {GPU_MILLI: "2000", GPUS: "2"}
        elif chance.random() < 0.3:
            limits |= {GPU_MEMORY: str(chance.randrange(1, 9) * GIB)}
        side = a_container("side", limits={GPU_MILLI: "125", "cpu": "50m"})
        containers = [a_container(limits=limits), *([side] if chance.random() < 0.1 else [])]
        return a_pod(name, scheduler="partage-scheduler", containers=containers)
