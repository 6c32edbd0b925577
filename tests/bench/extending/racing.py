"""One backlog, placed by a real kube-scheduler alone or with our daemon as its extender.

kube-scheduler has its defaults, so of a large cluster it looks at a sample; only its own limit on requests is lifted.
Where other work fills the machine rates say little, so the time of each processor's user is told as well.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import msgspec

from partage_base.kube import ApiServer, Changed, pods_path
from partage_plugins.vocabulary.keys import GPU_MILLI
from rig.control.plane import ControlPlane
from rig.identity.delivered import delivered
from rig.identity.people import TEAM
from rig.talking.manifests import a_pod

CONFIGURATION: Final = "extender/kube-scheduler-configuration.yaml"
MILLIS: Final = (125, 250, 250, 500, 500, 500, 700, 1000, 1000)
_AT_ONCE: Final = 16
_NO_LIMIT: Final = 5000
_PATIENCE_S: Final = 600.0
_COUNT: Final = re.compile(
    r'^partage_scheduler_extender_seconds_count{question="(\w+)",result="(\w+)"} ([0-9.e+]+)$', re.MULTILINE
)
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Backlog:
    """Pods that are there before it begins."""

    pods: int
    pod: Callable[[int], dict[str, Any]]
    first: int = 0
    """The first one's number."""

    @property
    def all(self) -> Iterator[dict[str, Any]]:
        """Every one of them."""
        return map(self.pod, range(self.first, self.first + self.pods))


@dataclass(frozen=True)
class Race:
    """What one backlog took."""

    seconds: float
    """From the first binding to the last."""
    pods: int
    cpu_us: Mapping[str, float]
    """For each pod, by who used it."""

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.seconds


def whole(races: Sequence[Race]) -> Race:
    """All of them as one."""
    pods = sum(race.pods for race in races)
    cpu_us = {who: sum(race.cpu_us[who] * race.pods for race in races) / pods for who in races[0].cpu_us}
    return Race(sum(race.seconds for race in races), pods, cpu_us)


def with_extender(port: int) -> dict[str, Any]:
    """What we deliver, but for loopback and with kube-scheduler's own choice of how many nodes it looks at."""
    (whole,) = delivered(CONFIGURATION)
    (extender,) = whole["extenders"]
    plain = {key: value for key, value in extender.items() if key not in {"enableHTTPS", "tlsConfig"}}
    return {"extenders": [{**plain, "urlPrefix": f"http://127.0.0.1:{port}"}]}


def plain_pod(number: int) -> dict[str, Any]:
    """Of kube-scheduler alone."""
    return a_pod(f"plain-{number:05}", scheduler="default-scheduler", limits={"cpu": "100m"})


def sharing_pod(number: int) -> dict[str, Any]:
    """The same, with part of a card."""
    limits = {"cpu": "100m", GPU_MILLI: str(MILLIS[number % len(MILLIS)])}
    return a_pod(f"sharing-{number:05}", scheduler="default-scheduler", limits=limits)


async def raced(
    control: ControlPlane,
    server: ApiServer,
    backlog: Backlog,
    *,
    configuration: Mapping[str, Any] | None = None,
    daemon: int | None = None,
) -> Race:
    """On nodes that are there; `daemon` is the process of the extender, for which kube-scheduler is configured."""
    await _created(server, backlog)
    version = (await server.list(pods_path(), _Seen, limit=500)).resource_version
    processes = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid}
    processes |= {"daemon": daemon} if daemon else {}
    limits = {"clientConnection": {"qps": _NO_LIMIT, "burst": _NO_LIMIT}}
    kube = control.another_scheduler({**limits, **(configuration or {})})
    kube.start()
    try:
        return await _watched(server, version, backlog, processes | {"kube-scheduler": kube.pid})
    finally:
        kube.kill()


class Daemon:
    """Ours, as an extender."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, metrics: int) -> None:
        self.pid, self.port, self._metrics = process.pid, port, metrics

    def answered(self) -> dict[str, float]:
        """How often it answered what, as `question/result`."""
        with urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=10) as page:
            found = _COUNT.findall(page.read().decode())
        return {f"{question}/{result}": float(count) for question, result, count in found}


@contextmanager
def extender(kubeconfig: Path, root: Path) -> Generator[Daemon]:
    """It leads and knows everything; keys are below `root`."""
    port, metrics, log = _free_port(), _free_port(), root / "extender.log"
    flags = ["--extender-address", f"127.0.0.1:{port}", "--metrics-address", f"127.0.0.1:{metrics}"]
    flags += ["--silent-after-s", "3600"]
    command = [sys.executable, "-m", "partage_scheduler", "--kubeconfig", str(kubeconfig), "--root", str(root), *flags]
    with log.open("wb") as file:
        daemon = subprocess.Popen(command, stderr=file, stdout=file)
    try:
        while b"pods are placed" not in log.read_bytes():
            assert daemon.poll() is None, f"the daemon ended with {daemon.returncode}"
            time.sleep(0.2)
        yield Daemon(daemon, port, metrics)
    except BaseException:
        sys.stderr.write(log.read_text()[-4000:])
        raise
    finally:
        daemon.terminate()
        daemon.wait(30)


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Name(msgspec.Struct):
    name: str


class _Seen(msgspec.Struct):
    """As much of a pod as tells that it is bound."""

    metadata: _Name
    spec: _Spec


async def _created(server: ApiServer, backlog: Backlog) -> None:
    pods = backlog.all

    async def work() -> None:
        for pod in pods:
            await server.create(pods_path(TEAM), pod, msgspec.Raw)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


async def _watched(server: ApiServer, version: str, backlog: Backlog, processes: Mapping[str, int]) -> Race:
    """Names are counted, since a pod may change after it is bound; those of the backlog before are not."""
    waiting, pods = {pod["metadata"]["name"] for pod in backlog.all}, backlog.pods
    bound, first, before = set[str](), 0.0, dict[str, float]()
    async with asyncio.timeout(_PATIENCE_S):
        async for event in server.watch(pods_path(), _Seen, since=version, lasts_s=_PATIENCE_S):
            if isinstance(event, Changed) and event.item.spec.node_name and event.item.metadata.name in waiting:
                if not bound:
                    first, before = time.perf_counter(), _cpu_s(processes)
                bound.add(event.item.metadata.name)
                if len(bound) >= pods:
                    break
    seconds, after = time.perf_counter() - first, _cpu_s(processes)
    return Race(seconds, pods, {name: (after[name] - before[name]) / pods * 1e6 for name in processes})


def _cpu_s(processes: Mapping[str, int]) -> dict[str, float]:
    fields = {name: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for name, pid in processes.items()}
    return {name: (int(each[11]) + int(each[12])) / _TICKS for name, each in fields.items()}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
