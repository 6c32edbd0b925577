"""Scheduling cost of pods with claims, and the number of cards that they use: 500 nodes of eight cards.

In one cluster kube-scheduler places plain pods, and as many with a claim of 300 milli, in turns. In others our
scheduler places such pods with such claims, by its default policy and by `binpack`. Nodes are objects with the slices
that our driver would publish; pods and claims exist before each turn. Processor time counts from a turn's first
binding. Afterwards all allocations are added up: no card may be granted more than once, and the figure is the number of
cards in use.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from bench.harness import Bench
from bench.scheduling.filling import AT_ONCE, PLAIN, fill_claiming, fill_nodes, fill_plain
from bench.scheduling.placing import Started, component, daemon, joined, turn
from bench.scheduling.racing import Race, whole
from partage_base.kube import Access, ApiServer, resource_claims_path
from rig.client.cluster import Cluster
from rig.client.resources import DEVICE_CLASSES
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import FOR_BENCHMARKS
from rig.identity.permissions import CLAIMS_FILES, delivered
from support.claim_objects import device_class

NODES, PODS, TURNS = 500, 1_000, 2
SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS = 20, 30, 1
MILLI: Final = 300
CLAIMING: Final = "claiming"
STOCK: Final = "kube-scheduler"
POLICIES: Final = ("fgd+", "binpack")
"""Policies of our scheduler, the default first."""
MOST_CARDS: Final = 1.05
_NO_LIMIT: Final = 5000
_FLAGS: Final = ("--claims", "--no-elect")


class Found(NamedTuple):
    races: dict[str, list[Race]]
    """Results by kind of pod."""
    cards: Counter[str]
    """Milli claimed of each card."""
    claims: int


class Allocators(NamedTuple):
    """A cluster's scheduler, started for either kind of pod, and the names of these pods."""

    name: str
    claiming: Started
    plain: Started | None = None


async def measured(control: ControlPlane, who: Allocators, nodes: int, pods: int, turns: int) -> Found:
    with closing(Cluster(control)) as cluster:
        admin = await asyncio.to_thread(Access.find, cluster.kubectl.kubeconfig)
    others = {"etcd": control.etcd.pid, "kube-apiserver": control.apiserver.pid}
    races: dict[str, list[Race]] = {PLAIN: [], CLAIMING: []}
    async with ApiServer(admin, user_agent="bench", connections=AT_ONCE, deadline_s=60) as server:
        await fill_nodes(server, nodes, pool="dra")
        for numbers in (range(first, first + pods) for first in range(0, pods * turns, pods)):
            if who.plain is not None:
                await fill_plain(server, numbers)
                races[PLAIN] += await turn(server, who.plain, PLAIN, pods, others)
            await fill_claiming(server, numbers, named=CLAIMING, scheduler=who.name, milli=MILLI)
            races[CLAIMING] += await turn(server, who.claiming, CLAIMING, pods, others)
        found = (await server.list(resource_claims_path(), _Claim, limit=1000)).items
    return Found(races, *_given(found))


class _Claim(msgspec.Struct):
    status: dict[str, Any] = {}


def _given(claims: Iterable[_Claim]) -> tuple[Counter[str], int]:
    cards, allocated = Counter[str](), 0
    for claim in claims:
        for each in claim.status.get("allocation", {}).get("devices", {}).get("results", ()):
            allocated += 1
            cards[f"{each['pool']}/{each['device']}"] += int(each["consumedCapacity"]["share"])
    if max(cards.values(), default=0) > 1000:
        raise AssertionError(f"a card is given more than once: {cards.most_common(1)}")
    return cards, allocated


def stock(control: ControlPlane) -> Allocators:
    started = partial(
        component, control.another_scheduler({"clientConnection": {"qps": _NO_LIMIT, "burst": _NO_LIMIT}})
    )
    return Allocators("default-scheduler", started, started)


def ours(control: ControlPlane, root: Path, policy: str) -> Allocators:
    with closing(Cluster(control)) as cluster:
        for manifest in (each for file in CLAIMS_FILES for each in delivered(file)):
            cluster.api.apply(manifest)
    access, _ = joined(control, root)
    return Allocators(
        "partage-scheduler", partial(daemon, access, root, *_FLAGS, variables={"PARTAGE_GPU_POLICY": policy})
    )


def main() -> int:
    bench = Bench.from_argv("allocating", libraries=["msgspec", "numpy", "aiohttp", "uvloop"])
    nodes, pods, turns = (SMOKE_NODES, SMOKE_PODS, SMOKE_TURNS) if bench.smoke else (NODES, PODS, TURNS)
    fewest = math.ceil(pods * turns / (1000 // MILLI))
    bench.figure("nodes", nodes)
    bench.figure("claims", pods * turns)
    bench.figure("the fewest cards that have room for them", fewest)
    for name in (STOCK, *POLICIES):
        with control_plane(FOR_BENCHMARKS, say=lambda _line: None) as control, tempfile.TemporaryDirectory() as root:
            with closing(Cluster(control)) as cluster:
                cluster.api.create(DEVICE_CLASSES.at(), device_class())
            who = stock(control) if name == STOCK else ours(control, Path(root), name)
            found = bench.run(measured(control, who, nodes, pods, turns))
        bench.engaged(f"all claims are allocated by {name}", found.claims == pods * turns)
        bench.figure(f"{name}: cards in use", len(found.cards))
        for kind, races in found.races.items():
            if races:
                tell(bench, f"{name}, {kind}", whole(races))
        if name == "binpack":
            bench.bar(
                "cards that binpack uses, of the fewest", len(found.cards) / fewest, at_most=MOST_CARDS, unit="times"
            )
    return bench.finish()


def tell(bench: Bench, name: str, race: Race) -> None:
    bench.figure(f"{name}: pods a second", round(race.rate, 1))
    for who, used_us in race.cpu_us.items():
        bench.figure(f"{name}: s of {who} for 1,000 pods", round(used_us / 1e3, 1))


if __name__ == "__main__":
    sys.exit(main())
