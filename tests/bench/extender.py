"""How fast a real kube-scheduler places a backlog with partage as its extender, and how fast plain pods without it.

In turns, since no machine is equally fast all the while; without the extender its process is not there at all. Nodes
have eight cards each. Every allocation is verified afterwards.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.extending.placing import PLAIN, SHARING, Backlog, extender, plain_pod, sharing_pod, turn, with_extender
from bench.harness import Bench
from bench.scheduling.filling import AT_ONCE, fill_nodes
from bench.scheduling.racing import Race, whole
from bench.scheduling.verifying import verified
from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import Access, ApiServer, pods_path
from partage_scheduler.objects import ApiPod
from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import SCHEDULER, TEAM

NODES, PODS, TURNS = 5_000, 1_000, 9
SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS = 20, 40, 1


class Result(NamedTuple):
    plain: list[Race]
    ours: list[Race]
    answered: Counter[str]
    verified: Counter[str]


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int, turns: int) -> Result:
    cluster = Cluster(control)
    access = control.identities.kubeconfig(cluster.as_account(SCHEDULER).identity, control.server)
    add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate())
    admin = await asyncio.to_thread(Access.find, control.identities.kubeconfig(cluster.identity, control.server))
    plain, ours, answered = list[Race](), list[Race](), Counter[str]()
    async with ApiServer(admin, user_agent="bench", connections=AT_ONCE, deadline_s=60) as server:
        await fill_nodes(server, nodes)
        for first in range(0, pods * turns, pods):
            plain.append(await turn(control, server, Backlog(pods, PLAIN, plain_pod, first)))
            with extender(access, root) as daemon:
                backlog = Backlog(pods, SHARING, sharing_pod, first)
                configuration = with_extender(daemon.port)
                ours.append(await turn(control, server, backlog, configuration=configuration, daemon=daemon.pid))
                answered.update(daemon.answered())
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    cluster.close()
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
