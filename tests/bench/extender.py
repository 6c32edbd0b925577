"""Throughput of a real kube-scheduler for a backlog, with partage as its extender and for plain pods without it.

In turns, since no machine has constant speed; without the extender its process does not run. Nodes have eight cards
each. kube-scheduler has its defaults, so in a large cluster it samples the nodes; only its limit on requests is lifted.
Every allocation is verified afterwards.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import urlopen

from bench.harness import Bench
from bench.scheduling.filling import AT_ONCE, MILLIS, PLAIN, fill_nodes, fill_plain, fill_pods
from bench.scheduling.placing import Started, component, daemon, joined, turn
from bench.scheduling.racing import Race, whole
from bench.scheduling.verifying import verified
from partage_base.kube import ApiServer, pods_path
from partage_scheduler.objects import ApiPod
from rig.client.wait import until
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import TEAM
from rig.identity.permissions import delivered
from support.processes import free_port

NODES, PODS, TURNS = 5_000, 1_000, 9
SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS = 20, 40, 1
SHARING: Final = "sharing"
CONFIGURATION: Final = "extender/kube-scheduler-configuration.yaml"
_NO_LIMIT: Final = 5000
_COUNT: Final = re.compile(
    r'^partage_scheduler_extender_seconds_count{question="(\w+)",result="(\w+)"} ([0-9.e+]+)$', re.MULTILINE
)


class Result(NamedTuple):
    plain: list[Race]
    ours: list[Race]
    answered: Counter[str]
    verified: Counter[str]


class Extender(NamedTuple):
    """Our extender, as leader and with a filled cache."""

    pid: int
    port: int
    metrics: int

    def answered(self) -> dict[str, float]:
        with urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10) as page:
            found = _COUNT.findall(page.read().decode())
        return {f"{question}/{result}": float(count) for question, result, count in found}

    def configured(self) -> dict[str, Any]:
        """The delivered configuration, except for loopback and kube-scheduler's own size of its sample of nodes."""
        (whole,) = delivered(CONFIGURATION)
        (extender,) = whole["extenders"]
        plain = {key: value for key, value in extender.items() if key not in {"enableHTTPS", "tlsConfig"}}
        return {"extenders": [{**plain, "urlPrefix": f"http://127.0.0.1:{self.port}"}]}


@contextmanager
def serving(kubeconfig: Path, root: Path) -> Generator[Extender]:
    port, metrics = free_port(), free_port()
    flags = ("--extender-address", f"127.0.0.1:{port}", "--metrics-address", f"127.0.0.1:{metrics}")
    with daemon(kubeconfig, root, *flags) as process:
        until("the extender serves", lambda: None if "cache in sync" in process.said else "not yet")
        yield Extender(process.pid, port, metrics)


def kube_scheduler(control: ControlPlane, configuration: Mapping[str, Any]) -> Started:
    limits = {"clientConnection": {"qps": _NO_LIMIT, "burst": _NO_LIMIT}}
    return partial(component, control.another_scheduler({**limits, **configuration}))


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int, turns: int) -> Result:
    access, admin = await asyncio.to_thread(joined, control, root)
    others = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid}
    plain, ours, answered = list[Race](), list[Race](), Counter[str]()
    async with ApiServer(admin, user_agent="bench", connections=AT_ONCE, deadline_s=60) as server:
        await fill_nodes(server, nodes)
        for numbers in (range(first, first + pods) for first in range(0, pods * turns, pods)):
            await fill_plain(server, numbers)
            plain += await turn(server, kube_scheduler(control, {}), PLAIN, pods, others)
            with serving(access, root) as extender:
                wants = [milli for milli in MILLIS if milli]
                await fill_pods(server, numbers, named=SHARING, scheduler="default-scheduler", millis=wants)
                beside = kube_scheduler(control, extender.configured())
                ours += await turn(server, beside, SHARING, pods, {**others, "daemon": extender.pid})
                answered.update(extender.answered())
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    return Result(plain, ours, answered, verified(found, root))


def main() -> int:
    bench = Bench.from_argv("extender", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods, turns = (SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS) if bench.smoke else (NODES, PODS, TURNS)
    with control_plane(FOR_BENCHMARKS, say=_quiet) as control, tempfile.TemporaryDirectory() as root:
        found = bench.run(measured(control, Path(root), nodes, pods, turns))
    bench.engaged("all pods are bound", found.verified["bound"] == 2 * pods * turns)
    for what, often in found.answered.items():
        bench.figure(f"answers, {what}", often)
    for number, (without, beside) in enumerate(zip(found.plain, found.ours, strict=True), start=1):
        bench.figure(f"turn {number}, of the rate without an extender, %", round(100 * beside.rate / without.rate, 1))
    plain, ours = whole(found.plain), whole(found.ours)
    for name, race in (("plain", plain), ("extender", ours)):
        bench.figure(f"{name}, pods/s", round(race.rate, 1))
        for who, used_us in race.cpu_us.items():
            bench.figure(f"{name}, us of {who} for each pod", round(used_us))
    bench.bar("of the rate without an extender", 100 * ours.rate / plain.rate, at_least=44, unit="%")
    return bench.finish()


def _quiet(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
