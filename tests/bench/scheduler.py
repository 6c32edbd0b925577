"""Placement throughput for a backlog on a large cluster: a real API server and etcd, all on this machine.

In one run kube-scheduler places plain pods, without a limit on its calls, and our daemon as many pods, of which nine in
ten request parts of cards, on the same nodes; as many again are placed before both. All exist from the beginning. The
two work on their backlogs in turns, each alone, since no machine has constant speed: in some runs one half was three
times as fast as the other. A watch records when a turn's first and last pods were bound. Our results are verified:
every allocation's signature, every card's share and memory.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from bench.harness import Bench
from bench.scheduling.filling import OURS, PLAIN, fill_nodes, fill_placed, fill_plain, fill_pods
from bench.scheduling.placing import component, daemon, joined, turn
from bench.scheduling.racing import Race, whole
from bench.scheduling.verifying import verified
from partage_base.kube import ApiServer, pods_path
from partage_scheduler.objects import ApiPod
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import TEAM

NODES, PODS, TURNS = 5_000, 10_000, 4
SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS = 20, 60, 2
FASTER: Final = 2.0
SETTINGS: Final = replace(
    FOR_BENCHMARKS,
    kube_scheduler=True,
    kube_scheduler_configuration={"clientConnection": {"qps": 10_000, "burst": 10_000}},
)


class Result(NamedTuple):
    theirs: list[Race]
    ours: list[Race]
    verified: Counter[str]


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int, turns: int) -> Result:
    assert control.scheduler is not None
    control.scheduler.stop()
    access, admin = await asyncio.to_thread(joined, control, root)
    others = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid, "this bench": os.getpid()}
    theirs, ours = list[Race](), list[Race]()
    async with ApiServer(admin, user_agent="bench", connections=32, deadline_s=60) as server:
        await fill_nodes(server, nodes)
        await fill_placed(server, pods, nodes)
        await fill_plain(server, range(pods))
        await fill_pods(server, range(pods))
        for _ in range(turns):
            theirs += await turn(server, partial(component, control.scheduler), PLAIN, pods // turns, others)
            ours += await turn(server, partial(daemon, access, root), OURS, pods // turns, others)
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    return Result(theirs, ours, verified((pod for pod in found if pod.name.startswith(OURS)), root))


def main() -> int:
    bench = Bench.from_argv("scheduler", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods, turns = (SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS) if bench.smoke else (NODES, PODS, TURNS)
    with control_plane(SETTINGS, say=lambda _line: None) as control, tempfile.TemporaryDirectory() as root:
        result = bench.run(measured(control, Path(root), nodes, pods, turns))
    bench.engaged("all pods are bound", result.verified["bound"] == pods)
    bench.figure("nodes", nodes)
    bench.figure("pods in all", 3 * pods)
    bench.figure("cards in use", result.verified["cards in use"])
    for name, races in (("ours", result.ours), ("kube-scheduler", result.theirs)):
        for number, race in enumerate(races, start=1):
            bench.figure(f"turn {number}: {name}, pods a second", round(race.rate, 1))
    ours, theirs = whole(result.ours), whole(result.theirs)
    for name, race in (("ours", ours), ("kube-scheduler", theirs)):
        bench.figure(f"{name}: pods a second", round(race.rate, 1))
        for who, used_us in race.cpu_us.items():
            bench.figure(f"{name}: us of {who} for each pod", round(used_us))
        bench.figure(f"{name}: to the first binding, s", round(race.start_seconds, 2))
        bench.figure(f"{name}: resident, MiB", round(race.resident_mib))
    bench.bar("against kube-scheduler", ours.rate / theirs.rate, at_least=FASTER, unit="times")
    bench.bar("resident memory", ours.resident_mib, at_most=600, unit="MiB")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
