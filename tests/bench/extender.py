"""How fast a real kube-scheduler places a backlog with partage as its extender, and how fast plain pods without it.

Nodes have eight cards each. Every allocation is verified afterwards. `make bench-scheduler` has the bar; here the parts
are looked at.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.extending.racing import Backlog, Race, extender, plain_pod, raced, sharing_pod, with_extender
from bench.harness import Bench
from bench.scheduler import verified
from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import Access, ApiServer, leases_path, micro_time, nodes_path, pods_path
from partage_plugins.codecs import encode_inventory
from partage_plugins.vocabulary import GPU, GpuPart, Inventory, Ready
from partage_plugins.vocabulary.keys import INVENTORY
from partage_scheduler.objects import ApiPod
from rig.control.plane import ControlPlane
from rig.control.running import control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.talking.cluster import Cluster
from rig.talking.manifests import a_node
from support.gpu_fleet import card

NODES, PODS = 5_000, 4_000
SMOKE_NODES, SMOKE_PODS = 20, 40
CARDS: Final = 8
_AT_ONCE: Final = 16


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
    async with ApiServer(admin, user_agent="bench", connections=_AT_ONCE, deadline_s=60) as server:
        await _fill(server, nodes)
        plain = await raced(control, server, Backlog(pods, plain_pod))
        with extender(control.identities.kubeconfig(account, control.server), root) as daemon:
            configuration = with_extender(daemon.port)
            backlog = Backlog(pods, sharing_pod)
            ours = await raced(control, server, backlog, configuration=configuration, daemon=daemon.pid)
            answered = daemon.answered()
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    cluster.close()
    return Result(plain, ours, answered, verified(found, root))


async def _fill(server: ApiServer, nodes: int) -> None:
    names = iter([f"n{number:04}" for number in range(nodes)])

    async def work() -> None:
        for name in names:
            await server.create(nodes_path(), _node(name), msgspec.Raw)
            beat = {"holderIdentity": name, "leaseDurationSeconds": 600, "renewTime": micro_time(datetime.now(UTC))}
            await server.create(leases_path(OUR_NAMESPACE), {"metadata": {"name": name}, "spec": beat}, msgspec.Raw)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def _node(name: str) -> dict[str, Any]:
    part = GpuPart(driver="580", cuda="13.0", cards=tuple(card(f"{name}-{place}") for place in range(CARDS)))
    inventory = Inventory(kinds={GPU.name: part}, ready=Ready(crishim=True, broker=True))
    return a_node(name, annotations={INVENTORY: encode_inventory(inventory).decode()})


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
