"""How fast a real kube-scheduler places a backlog with partage as its extender, and how fast plain pods without it.

Nodes have eight cards each. Every allocation is verified afterwards.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.extending.racing import Backlog, Race, extender, plain_pod, raced, sharing_pod, with_extender
from bench.harness import Bench
from bench.scheduling.filling import AT_ONCE, fill_nodes
from bench.scheduling.verifying import verified
from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import Access, ApiServer, pods_path
from partage_scheduler.objects import ApiPod
from rig.control.plane import ControlPlane
from rig.control.running import control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import SCHEDULER, TEAM
from rig.talking.cluster import Cluster

NODES, PODS = 5_000, 4_000
SMOKE_NODES, SMOKE_PODS = 20, 40


class Result(NamedTuple):
    """What came out."""

    plain: Race
    ours: Race
    answered: dict[str, float]
    verified: Counter[str]


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int) -> Result:
    """Both races, on the same nodes."""
    cluster = Cluster(control)
    account = cluster.as_account(SCHEDULER).identity
    add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate())
    admin = await asyncio.to_thread(Access.find, control.identities.kubeconfig(cluster.identity, control.server))
    async with ApiServer(admin, user_agent="bench", connections=AT_ONCE, deadline_s=60) as server:
        await fill_nodes(server, nodes)
        plain = await raced(control, server, Backlog(pods, plain_pod))
        with extender(control.identities.kubeconfig(account, control.server), root) as daemon:
            configuration = with_extender(daemon.port)
            backlog = Backlog(pods, sharing_pod)
            ours = await raced(control, server, backlog, configuration=configuration, daemon=daemon.pid)
            answered = daemon.answered()
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    cluster.close()
    return Result(plain, ours, answered, verified(found, root))


def main() -> int:
    """Two backlogs."""
    bench = Bench.from_argv("extender", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods = (SMOKE_NODES, SMOKE_PODS) if bench.smoke else (NODES, PODS)
    with control_plane(FOR_BENCHMARKS, say=_quiet) as control, tempfile.TemporaryDirectory() as root:
        plain, ours, answered, counts = bench.run(measured(control, Path(root), nodes, pods))
    bench.engaged("all pods are bound", counts["bound"] == 2 * pods)
    for what, often in answered.items():
        bench.figure(f"answers, {what}", often)
    for name, race in (("plain", plain), ("extender", ours)):
        bench.figure(f"{name}, pods/s", race.rate)
        for who, used_us in race.cpu_us.items():
            bench.figure(f"{name}, us of {who} for each pod", used_us)
    bench.bar("of the rate without an extender", 100 * ours.rate / plain.rate, at_least=50, unit="%")
    return bench.finish()


def _quiet(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
