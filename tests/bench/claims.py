"""What an allocated claim costs, and how well cards are filled: our scheduler and kube-scheduler, claim by claim.

Each has a control plane of its own with the same nodes, classes and claims, and a pod for each claim. They work in
turns, each alone, so that both meet the same machine. kube-scheduler has no limit on its calls; it finds the cards in
ResourceSlices, ours in the nodes' inventories, and what lets nobody else allocate is in force for ours.

Ours packs by `POLICY`. With fgd+ alone, once it has learnt that all ask for 300, it opens a card rather than give a
third share of one, after which 100 are left that nobody asks for: 979 cards where 667 would do, while others are idle.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.harness import Bench
from bench.scheduling.claiming import CLAIMED, SHARE, fill_claimable, fill_claims, verified
from bench.scheduling.placing import Started, component, daemon, turn
from bench.scheduling.racing import Race, whole
from partage_base.keyring import KeyFolders, add_pair
from partage_base.kube import Access, ApiServer
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from rig.client.cluster import Cluster
from rig.client.resources import path_of
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.people import SCHEDULER
from rig.identity.permissions import delivered
from support.claims_stage import FILES

NODES, CLAIMS, TURNS = 500, 2_000, 2
SMOKE_NODES, SMOKE_CLAIMS, SMOKE_TURNS = 10, 40, 2
CHEAPER: Final = 1 / 3
OF_THE_FEWEST: Final = 1.01
THEIRS: Final = replace(
    FOR_BENCHMARKS,
    kube_scheduler=True,
    kube_scheduler_configuration={"clientConnection": {"qps": 10_000, "burst": 10_000}},
)
POLICY: Final = "fgd+:99,binpack:1"
OURS, KUBE = "ours", "kube-scheduler"


class Side(NamedTuple):
    server: ApiServer
    started: Started
    others: dict[str, int]
    races: list[Race]


class Result(NamedTuple):
    races: list[Race]
    verified: Counter[str]


async def measured(
    planes: dict[str, ControlPlane], root: Path, nodes: int, claims: int, turns: int
) -> dict[str, Result]:
    async with AsyncExitStack() as stack:
        sides: dict[str, Side] = {}
        for name, control in planes.items():
            cluster = Cluster(control)
            started = _ours(control, cluster, root) if name == OURS else _theirs(control)
            admin = control.identities.kubeconfig(cluster.identity, control.server)
            cluster.close()
            access = await asyncio.to_thread(Access.find, admin)
            server = ApiServer(access, user_agent="bench", connections=32, deadline_s=60)
            await stack.enter_async_context(server)
            await fill_claimable(server, nodes)
            await fill_claims(server, claims, scheduler="partage-scheduler" if name == OURS else "default-scheduler")
            others = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid, "this bench": os.getpid()}
            sides[name] = Side(server, started, others, [])
        for _ in range(turns):
            for side in sides.values():
                side.races.extend(await turn(side.server, side.started, CLAIMED, claims // turns, side.others))
        return {name: Result(side.races, await verified(side.server)) for name, side in sides.items()}


def _theirs(control: ControlPlane) -> Started:
    assert control.scheduler is not None
    control.scheduler.stop()
    return partial(component, control.scheduler)


def _ours(control: ControlPlane, cluster: Cluster, root: Path) -> Started:
    for manifest in (each for file in FILES for each in delivered(file)):
        cluster.api.create(path_of(manifest).rpartition("/")[0], manifest)
    add_pair(KeyFolders.at_root(root), Ed25519PrivateKey.generate())
    access = control.identities.kubeconfig(cluster.as_account(SCHEDULER).identity, control.server)
    return partial(daemon, access, root, "--claims", "--no-elect", env={"PARTAGE_GPU_POLICY": POLICY})


def main() -> int:
    bench = Bench.from_argv("claims", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, claims, turns = (SMOKE_NODES, SMOKE_CLAIMS, SMOKE_TURNS) if bench.smoke else (NODES, CLAIMS, TURNS)
    with (
        control_plane(THEIRS, say=lambda _line: None) as theirs,
        control_plane(FOR_BENCHMARKS, say=lambda _line: None) as ours,
        tempfile.TemporaryDirectory() as root,
    ):
        results = bench.run(measured({KUBE: theirs, OURS: ours}, Path(root), nodes, claims, turns))
    bench.figure("nodes", nodes)
    bench.figure("claims of each", claims)
    races = {name: whole(result.races) for name, result in results.items()}
    for name, result in results.items():
        bench.engaged(f"all pods of {name} are bound", result.verified["bound"] == claims)
        bench.figure(f"{name}: claims a second", round(races[name].rate, 1))
        bench.figure(f"{name}: cards in use", result.verified["cards in use"])
        for who, used_us in races[name].cpu_us.items():
            bench.figure(f"{name}: us of {who} for each claim", round(used_us))
    cpu = {name: race.cpu_us["the scheduler"] for name, race in races.items()}
    cards = {name: result.verified["cards in use"] for name, result in results.items()}
    bench.bar("the scheduler's time for a claim", cpu[OURS] / cpu[KUBE], at_most=CHEAPER, unit="of kube-scheduler's")
    bench.bar("claims a second", races[OURS].rate / races[KUBE].rate, at_least=1.0, unit="of kube-scheduler's")
    bench.figure("cards in use, of kube-scheduler's", round(cards[OURS] / cards[KUBE], 3))
    fewest = ceil(claims / (WHOLE_MILLI // SHARE))
    bench.bar("cards in use", cards[OURS] / fewest, at_most=OF_THE_FEWEST, unit="of the fewest that would do")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
