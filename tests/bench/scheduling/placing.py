"""Lets one scheduler work off a backlog, and takes its time from a watch and its cost from the kernel."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from partage_base.kube import ApiServer, Changed, pods_path
from rig.identity.people import TEAM
from rig.machine.components import Component

PATIENCE_S: Final = 900.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Seen(msgspec.Struct):
    """As much of a pod as tells that it is bound."""

    metadata: Meta
    spec: Spec


class Meta(msgspec.Struct):
    name: str


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one scheduler took."""

    pods: int
    seconds: float
    """From the first binding to the last."""
    start_seconds: float
    """From the start of the process to the first binding."""
    cpu_us: float
    """Of the process, for each pod, its start left out."""
    resident_mib: float

    @property
    def rate(self) -> float:
        """Pods in a second."""
        return self.pods / self.seconds


Started = Callable[[], AbstractContextManager[int]]
"""Starts a scheduler, tells its process id, and ends it."""


async def placed(server: ApiServer, started: Started, pods: int, named: str) -> Outcome:
    """Until all pods whose names begin so are bound."""
    version = (await server.list(pods_path(TEAM), Seen, limit=1000)).resource_version
    bound, first, first_cpu_s = set[str](), 0.0, 0.0
    began = time.perf_counter()
    with started() as pid:
        async with asyncio.timeout(PATIENCE_S):
            async for event in server.watch(pods_path(TEAM), Seen, since=version, lasts_s=PATIENCE_S):
                if isinstance(event, Changed) and event.item.spec.node_name:
                    if not bound:
                        first, first_cpu_s = time.perf_counter(), cpu_s(pid)
                    bound.add(event.item.metadata.name)
                    if len(bound) == pods:
                        break
        now, spent_s = time.perf_counter(), cpu_s(pid) - first_cpu_s
        if not all(name.startswith(named) for name in bound):
            raise AssertionError(f"pods were bound that are not {named}")
        return Outcome(pods, now - first, first - began, spent_s / pods * 1e6, resident_mib(pid))


@contextmanager
def daemon(kubeconfig: Path, root: Path) -> Generator[int]:
    """Ours."""
    log = root / "scheduler.log"
    command = [sys.executable, "-m", "partage_scheduler", "--kubeconfig", str(kubeconfig), "--root", str(root)]
    with log.open("wb") as file:
        process = subprocess.Popen([*command, "--silent-after-s", "3600"], stderr=file, stdout=file)
    try:
        yield process.pid
    except BaseException:
        sys.stderr.write(log.read_text()[-4000:])
        raise
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def component(scheduler: Component) -> Generator[int]:
    """One of the rig's."""
    scheduler.start()
    try:
        yield scheduler.pid
    finally:
        scheduler.stop()


def cpu_s(pid: int) -> float:
    """What a process has taken of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_mib(pid: int) -> float:
    """The most that it held of the memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
