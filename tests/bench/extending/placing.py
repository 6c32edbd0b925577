"""One backlog, placed by a real kube-scheduler alone or with our daemon as its extender.

kube-scheduler has its defaults, so of a large cluster it looks at a sample; only its own limit on requests is lifted.
"""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import msgspec

from bench.scheduling.racing import Race, raced, waiting
from partage_base.kube import ApiServer, pods_path
from partage_plugins.vocabulary.keys import GPU_MILLI
from rig.client.manifests import a_pod
from rig.control.plane import ControlPlane
from rig.identity.people import TEAM
from rig.identity.permissions import delivered

PLAIN, SHARING = "plain", "sharing"
CONFIGURATION: Final = "extender/kube-scheduler-configuration.yaml"
MILLIS: Final = (125, 250, 250, 500, 500, 500, 700, 1000, 1000)
_AT_ONCE: Final = 16
_NO_LIMIT: Final = 5000
_COUNT: Final = re.compile(
    r'^partage_scheduler_extender_seconds_count{question="(\w+)",result="(\w+)"} ([0-9.e+]+)$', re.MULTILINE
)


@dataclass(frozen=True)
class Backlog:
    pods: int
    named: str
    pod: Callable[[int], dict[str, Any]]
    first: int = 0

    @property
    def all(self) -> Iterator[dict[str, Any]]:
        return map(self.pod, range(self.first, self.first + self.pods))


def with_extender(port: int) -> dict[str, Any]:
    """What we deliver, but for loopback and with kube-scheduler's own choice of how many nodes it looks at."""
    (whole,) = delivered(CONFIGURATION)
    (extender,) = whole["extenders"]
    plain = {key: value for key, value in extender.items() if key not in {"enableHTTPS", "tlsConfig"}}
    return {"extenders": [{**plain, "urlPrefix": f"http://127.0.0.1:{port}"}]}


def plain_pod(number: int) -> dict[str, Any]:
    return a_pod(f"{PLAIN}-{number:05}", scheduler="default-scheduler", limits={"cpu": "100m"})


def sharing_pod(number: int) -> dict[str, Any]:
    limits = {"cpu": "100m", GPU_MILLI: str(MILLIS[number % len(MILLIS)])}
    return a_pod(f"{SHARING}-{number:05}", scheduler="default-scheduler", limits=limits)


async def turn(
    control: ControlPlane,
    server: ApiServer,
    backlog: Backlog,
    *,
    configuration: Mapping[str, Any] | None = None,
    daemon: int | None = None,
) -> Race:
    """On nodes that are there; `daemon` is the process of the extender, for which kube-scheduler is configured."""
    await _created(server, backlog)
    pods = await waiting(server, backlog.named)
    processes = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid}
    processes |= {"daemon": daemon} if daemon else {}
    limits = {"clientConnection": {"qps": _NO_LIMIT, "burst": _NO_LIMIT}}
    kube = control.another_scheduler({**limits, **(configuration or {})})
    kube.start()
    try:
        return await raced(server, pods, backlog.pods, kube.pid, processes)
    finally:
        kube.kill()


class Daemon:
    def __init__(self, process: subprocess.Popen[bytes], port: int, metrics: int) -> None:
        self.pid, self.port, self._metrics = process.pid, port, metrics

    def answered(self) -> dict[str, float]:
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


async def _created(server: ApiServer, backlog: Backlog) -> None:
    pods = backlog.all

    async def work() -> None:
        for pod in pods:
            await server.create(pods_path(TEAM), pod, msgspec.Raw)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
