"""A steady stream of shared pods in a separate namespace: each is placed, lives a while, and is deleted.

Each has a twin without requests that the soak itself binds as soon as it sees it: this measures the time of API server,
machine and soak. The scheduler notes how much of an innocent's wait is its own (`observed`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from partage_base.kube import ApiServer, Conflict, KubeError, NotFound, binding_path, pods_path
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from partage_scheduler.objects import ApiPod
from rig.client.manifests import a_pod
from soak.siege.errands import Errands
from soak.siege.places import ARENA, REAL, TWINS, not_on

NAMESPACE: Final = "team-innocent"
MILLIS: Final = ("125", "250", "500")
LIFE_S: Final = 6.0
INNOCENT: Final = "innocent"
TWIN: Final = "twin"
_NOWHERE_REAL: Final = not_on(*REAL, ARENA)
"""Made-up nodes, so that there can be many pods."""
_AGAIN_S: Final = 0.1


@dataclass
class Pair:
    made_at: float
    waited_s: float | None = None
    twin_s: float | None = None
    own_s: float | None = None
    """The scheduler's own part of the wait."""


def is_innocent(pod: ApiPod) -> bool:
    return pod.namespace == NAMESPACE and pod.name.startswith(f"{INNOCENT}-")


class Innocents:
    """All of them. Times are this process's: of the request that created a pod, and of the event that bound it."""

    def __init__(self, server: ApiServer, chance: random.Random, *, rate: float) -> None:
        self._server, self._chance, self._rate = server, chance, rate
        self._errands = Errands(server)
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard: set[str] = set()
        self.pairs: list[Pair] = []

    @property
    def waiting(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.waited_s is None]

    def read(self, own: Mapping[str, float]) -> None:
        """Store the scheduler's own parts of their waits, by name."""
        for name, own_s in own.items():
            self.pairs[int(name.partition("-")[2])].own_s = own_s

    async def come(self, seconds: float) -> None:
        began, made = time.monotonic(), 0
        while (now := time.monotonic()) < began + seconds:
            for _ in range(int((now - began) * self._rate) - made):
                made += 1
                self._start()
            await asyncio.sleep(0.02)

    def heard(self, pod: ApiPod) -> None:
        """An event among those of all pods, as a scheduler receives it."""
        if pod.name.startswith(f"{TWIN}-") and not pod.node and pod.name not in self._heard:
            self._heard.add(pod.name)
            self._begin(self._bind(pod.name))

    def told(self, pod: ApiPod, at: float) -> None:
        """An event of an innocent or a twin."""
        kind, _, number = pod.name.partition("-")
        if kind not in {TWIN, INNOCENT} or not pod.node:
            return
        pair = self.pairs[int(number)]
        if kind == TWIN and pair.twin_s is None:
            pair.twin_s = at - pair.made_at
        elif kind != TWIN and pair.waited_s is None:
            pair.waited_s = at - pair.made_at
        else:
            return
        self._errands.delete(pod, after_s=self._chance.expovariate(1 / LIFE_S))

    def _start(self) -> None:
        number = f"{len(self.pairs):06}"
        self.pairs.append(Pair(time.monotonic()))
        limits = {GPU_MILLI: self._chance.choice(MILLIS), GPU_MEMORY: "1Gi", "cpu": "10m"}
        innocent = a_pod(f"{INNOCENT}-{number}", scheduler="partage-scheduler", limits=limits, spec=_NOWHERE_REAL)
        self._begin(self._until_done(pods_path(NAMESPACE), innocent))
        self._begin(self._until_done(pods_path(NAMESPACE), a_pod(f"{TWIN}-{number}", scheduler="soak")))

    async def _bind(self, name: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": self._chance.choice(TWINS)}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self._until_done(binding_path(NAMESPACE, name), body)

    async def _until_done(self, path: str, body: dict[str, Any]) -> None:
        while True:
            try:
                await self._server.create(path, body, msgspec.Raw)
            except (Conflict, NotFound):  # it was done without a reply, or is over
                return
            except KubeError:
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
