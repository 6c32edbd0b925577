"""How fast a backlog of pods is placed on a large cluster: a real API server and etcd, all on this machine.

In one run kube-scheduler places plain pods, without a limit on its calls, and then our daemon as many of which nine in
ten ask for parts of cards, on the same nodes. As many again are there already when ours begins. Each starts when all
its pods are there; a watch tells when the first and the last were bound. What ours did is verified: every allocation's
signature, every card's share and memory.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.harness import Bench
from bench.scheduling.filling import OURS, PLAIN, fill_nodes, fill_placed, fill_plain, fill_pods
from bench.scheduling.placing import Outcome, component, daemon, placed
from bench.scheduling.verifying import verified
from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import Access, ApiServer, pods_path
from partage_scheduler.objects import ApiPod
from rig.control.plane import ControlPlane
from rig.control.running import control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import SCHEDULER, TEAM
from rig.talking.cluster import Cluster

NODES, PODS = 5_000, 10_000
SMOKE_NODES, SMOKE_PODS = 20, 60
FASTER: Final = 2.0
SETTINGS: Final = replace(
    FOR_BENCHMARKS,
    kube_scheduler=True,
    kube_scheduler_configuration={"clientConnection": {"qps": 10_000, "burst": 10_000}},
)


async def measured(control: ControlPlane, root: Path, nodes: int, pods: int) -> tuple[Outcome, Outcome, Counter[str]]:
    """Both, one after the other: kube-scheduler, ours, and what ours did."""
    assert control.scheduler is not None
    control.scheduler.stop()
    cluster = Cluster(control)
    ours = control.identities.kubeconfig(cluster.as_account(SCHEDULER).identity, control.server)
    add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate())
    admin = await asyncio.to_thread(Access.find, control.identities.kubeconfig(cluster.identity, control.server))
    cluster.close()
    async with ApiServer(admin, user_agent="bench", connections=32, deadline_s=60) as server:
        await fill_nodes(server, nodes)
        await fill_plain(server, pods)
        theirs = await placed(server, partial(component, control.scheduler), pods, PLAIN)
        await fill_placed(server, pods, nodes)
        await fill_pods(server, pods)
        outcome = await placed(server, partial(daemon, ours, root), pods, OURS)
        found = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    return theirs, outcome, verified((pod for pod in found if pod.name.startswith(OURS)), root)


def main() -> int:
    """One run."""
    bench = Bench.from_argv("scheduler", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods = (SMOKE_NODES, SMOKE_PODS) if bench.smoke else (NODES, PODS)
    with control_plane(SETTINGS, say=lambda _line: None) as control, tempfile.TemporaryDirectory() as root:
        theirs, ours, counts = bench.run(measured(control, Path(root), nodes, pods))
    bench.engaged("all pods are bound", counts["bound"] == pods)
    bench.figure("nodes", nodes)
    bench.figure("pods in all", 3 * pods)
    bench.figure("cards in use", counts["cards in use"])
    for name, outcome in (("ours", ours), ("kube-scheduler", theirs)):
        bench.figure(f"{name}: pods a second", round(outcome.rate, 1))
        bench.figure(f"{name}: CPU a pod, us", round(outcome.cpu_us))
        bench.figure(f"{name}: to the first binding, s", round(outcome.start_seconds, 2))
        bench.figure(f"{name}: resident, MiB", round(outcome.resident_mib))
    bench.bar("against kube-scheduler", ours.rate / theirs.rate, at_least=FASTER, unit="times")
    bench.bar("resident memory", ours.resident_mib, at_most=600, unit="MiB")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
