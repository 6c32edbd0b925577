"""One turn of a scheduler on a backlog: a watch records when pods were bound, the kernel the processor time used.

If other work loads the machine, rates mean little, so the time of each process is recorded as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from partage_base.kube import ApiServer, Changed, pods_path
from support.procfs import cpu_s, status

PATIENCE_S: Final = 900.0
Processes = Mapping[str, int]
"""Names and ids of the processes whose processor time is recorded."""


@dataclass(frozen=True)
class Race:
    pods: int
    seconds: float
    start_seconds: float
    """From the start of the process to the first binding; the longest of several turns."""
    cpu_us: Mapping[str, float]
    """Per pod and process, from the first binding on."""
    resident_mib: float
    """The scheduler's peak resident memory."""

    @property
    def rate(self) -> float:
        return self.pods / self.seconds


def whole(races: Sequence[Race]) -> Race:
    pods = sum(race.pods for race in races)
    return Race(
        pods,
        sum(race.seconds for race in races),
        max(race.start_seconds for race in races),
        {who: sum(race.cpu_us[who] * race.pods for race in races) / pods for who in races[0].cpu_us},
        max(race.resident_mib for race in races),
    )


@dataclass(frozen=True)
class Waiting:
    """Pending pods, at a resource version of the list of pods."""

    names: Collection[str]
    version: str


async def waiting(server: ApiServer, named: str) -> Waiting:
    listed = await server.list(pods_path(), _Seen, limit=1000)
    names = {pod.metadata.name for pod in listed.items if not pod.spec.node_name}
    return Waiting({name for name in names if name.startswith(named)}, listed.resource_version)


async def raced(server: ApiServer, backlog: Waiting, pods: int, scheduler: int, others: Processes) -> Race:
    """Waits until the scheduler just started with this process id has bound this many of the backlog."""
    processes, began = {"the scheduler": scheduler, **others}, time.perf_counter()
    bound, first, before = set[str](), 0.0, dict[str, float]()
    async with asyncio.timeout(PATIENCE_S):
        async for event in server.watch(pods_path(), _Seen, since=backlog.version, lasts_s=PATIENCE_S):
            if isinstance(event, Changed) and event.item.spec.node_name and event.item.metadata.name in backlog.names:
                if not bound:
                    first, before = time.perf_counter(), _cpu_s(processes)
                bound.add(event.item.metadata.name)
                if len(bound) >= pods:
                    break
    now, after = time.perf_counter(), _cpu_s(processes)
    used_us = {name: (after[name] - before[name]) / pods * 1e6 for name in processes}
    return Race(pods, now - first, first - began, used_us, status(scheduler, "VmHWM") / 1024)


class _Meta(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Seen(msgspec.Struct):
    """The fields of a pod that show whether it is bound."""

    metadata: _Meta
    spec: _Spec


def _cpu_s(processes: Processes) -> dict[str, float]:
    return {name: cpu_s(pid) for name, pid in processes.items()}
