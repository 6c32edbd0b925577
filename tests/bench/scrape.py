"""Time of a scrape of the scheduler with 5,000 nodes of eight cards, and 30,000 pods with parts of them.

Between two scrapes 500 pods are replaced, each on a node of its own. One thread without I/O, so its time is processor
time; the scheduler counts in steps of 2 ms. More frequent scrapes get the earlier result.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.harness import Bench
from partage_base.daemon.exposition import page
from partage_plugins.api import GPU, CardId, PodUid, Reads
from partage_plugins.codecs import CRIT
from partage_scheduler.core import Core, new_core, plugins
from partage_scheduler.occupancy import OccupancyMetrics
from partage_scheduler.signatures import as_written
from support.gpu_fleet import GIB, card
from support.objects import allocation, given, grant, node, of_cards, pod
from support.scheduler_stage import settings_below

NODES: Final = 5_000
CARDS: Final = 8
PODS: Final = 30_000
SMALLER: Final = 50
ROUNDS: Final = 11
CHANGED: Final = 500


def uuid(number: int) -> CardId:
    return CardId(f"GPU-{number:08x}-7d3c-4b1e-9a52-{number:012x}")


def name_of(number: int) -> str:
    """A name as long as cloud providers' names."""
    return f"ip-10-{number // 256}-{number % 256}-17.internal"


def filled(root: Path, nodes: int, pods: int) -> Core:
    core = new_core(settings_below(root), plugins(), trusted=as_written((GPU,)))
    for number in range(nodes):
        cards = [
            card(uuid(number * CARDS + index), gib=79, index=index, model="NVIDIA H100 80GB HBM3")
            for index in range(CARDS)
        ]
        core.cluster.node(node(name_of(number), of_cards(cards, reads=Reads(crit=CRIT)), pods="110"))
        core.cluster.heartbeat(name_of(number), 0.0, 0.0)
    for number in range(pods):
        placed(core, number, nodes)
    return core


def placed(core: Core, number: int, nodes: int) -> None:
    """Adds a pod with a part of one card."""
    on = number % nodes
    held = uuid(on * CARDS + number // nodes % CARDS)
    name, namespace, node = f"train-resnet-{number}", f"team-{number % 40}", name_of(on)
    notes = given(allocation(f"uid-{name}", node, grant(held, 300, memory=8 * GIB)))
    core.cluster.pod(pod(name, namespace=namespace, node=node, annotations=notes))


def scraped_ns(core: Core, occupancy: OccupancyMetrics, leaving: range, *, nodes: int, pods: int) -> int:
    """The time of a scrape after these pods were replaced."""
    for number in leaving:
        core.cluster.pod_gone(PodUid(f"uid-train-resnet-{number}"))
        placed(core, pods + number, nodes)
    started = time.thread_time_ns()
    asyncio.run(occupancy.count())
    page(occupancy.families())
    return time.thread_time_ns() - started


def main() -> int:
    bench = Bench.from_argv("scrape", libraries=["numpy", "msgspec"])
    smaller = SMALLER if bench.smoke else 1
    with tempfile.TemporaryDirectory() as root:
        core = filled(Path(root), NODES // smaller, PODS // smaller)
    nodes, pods, changed = NODES // smaller, PODS // smaller, CHANGED // smaller
    occupancy = OccupancyMetrics(core.cluster)
    started = time.thread_time_ns()
    asyncio.run(occupancy.count())
    text = page(occupancy.families())
    bench.figure("the first scrape, ms", round((time.thread_time_ns() - started) / 1e6))
    lines = text.count(b"\npartage_pod_promised_share_ratio{")
    bench.engaged("every pod has its series", lines == PODS // smaller)
    turns = [range(first, first + changed) for first in range(0, changed * (2 if bench.smoke else ROUNDS), changed)]
    taken = [scraped_ns(core, occupancy, leaving, nodes=nodes, pods=pods) for leaving in turns]
    timing = bench.samples("a scrape", taken)
    bench.bar("a scrape, processor time", timing.median_us / 1000, at_most=300, unit="ms")
    bench.bar("its page", len(text) / 1e6, at_most=30, unit="MB")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
