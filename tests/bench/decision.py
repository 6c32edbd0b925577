"""Cost of one decision: fits, scores, allocate and take of one pod, on large fleets in use.

Mixed shapes: each pod is one of a made-up workload with the statistics of a production cluster. At the start every node
carries twelve pods, different ones on each node. A round lets many arrive and adds their times, so that rare shapes,
which cost more, count as often as they occur. A decision is one thread without I/O, so its time is processor time,
which this machine's neighbours don't change. The reference, in the same run: the same core without caches.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

from msgspec.structs import replace

from bench.harness import Bench
from partage_cli.simulation.policies import decider_with
from partage_cli.simulation.synthetic import Mix, synthetic
from partage_cli.simulation.typical import shape_of, typical_of
from partage_cli.simulation.workloads import CARD_MEMORY_BYTES, GIB, FleetNode, node_of, pod_ref
from partage_plugins.api import Allocation, PodRequest, PodUid, Resources
from partage_scheduler.decision import Decider
from support.objects import allocation, grant

CARDS: Final = 8
PODS_A_NODE: Final = 12
SHARES: Final = (50, 110, 160, 230, 320, 470, 650, 810, 1000)
"""Shares of the initial pods, each where it fits."""
NEEDS: Final = tuple(Resources(cpu_milli=cores * 1000, memory_bytes=2 * cores * GIB) for cores in (1, 3, 4, 8))
ROOM: Final = Resources(cpu_milli=128_000, memory_bytes=1024 * GIB)
MODELS: Final = ("large", "small", "old", "middle", "roomy", "newest")
MIX: Final = Mix(name="mixed, some choosy", choosy=0.1)
CASES: Final = (("fgd+", 5_000, 1000), ("fgd+", 10_000, 2000), ("kubeshare", 5_000, 300))
SMOKE_SMALLER: Final = 100
POOL_NODES: Final = 200
ROUNDS: Final = 9
ARRIVALS: Final = 1000
SMOKE_ARRIVALS: Final = 20
WITHOUT_MEMORY: Final = 20


def fleet(count: int) -> Iterator[FleetNode]:
    for number in range(count):
        yield node_of(number, f"node-{number:05}", ROOM, [MODELS[number % len(MODELS)]] * CARDS)


def twelve(node: FleetNode, chosen: random.Random) -> Iterator[Allocation]:
    """A node's pods before the measurement."""
    left = {card.id: 1000 for card in node.cards}
    for number in range(PODS_A_NODE):
        share = chosen.choice(SHARES[: len(SHARES) - number // 4])
        card = next((card for card, milli in left.items() if milli >= share), None)
        if card is None:
            continue
        left[card] -= share
        memory = CARD_MEMORY_BYTES * share // 1000
        yield allocation(f"{node.name}-{number}", node.name, grant(card, share, memory=memory))


class Arrivals:
    def __init__(self) -> None:
        self.pool = synthetic(POOL_NODES, mix=MIX).requests
        self._requests = cycle(self.pool)
        self._number = 0

    def some(self, count: int) -> list[PodRequest]:
        self._number += count
        first = self._number - count
        return [
            replace(request, pod=pod_ref(first + place)) for place, request in enumerate(islice(self._requests, count))
        ]


def decide_all(decider: Decider, requests: list[PodRequest], *, forgetful: bool = False) -> list[PodUid]:
    placed: list[PodUid] = []
    for request in requests:
        if forgetful:
            decider.score_cache.forget()
        decision = decider.decide(request)
        if decision is not None:
            decider.take(decision.allocation, request.needs)
            placed.append(request.pod.uid)
    return placed


def leave(decider: Decider, pods: list[PodUid], requests: list[PodRequest]) -> None:
    """Restores the initial state, in the caches as well; not measured."""
    for pod in pods:
        decider.give_back(pod)
    for request in requests:
        decider.weigh(request)


def in_use(policy: str, nodes: int, arrivals: Arrivals) -> Decider:
    decider, _ = decider_with(policy, typical_of(arrivals.pool))
    chosen = random.Random(nodes)  # noqa: S311  the same fleet in every run
    for node in fleet(nodes):
        decider.add_node(node.name, node.inventory, node.total)
        for each in twelve(node, chosen):
            decider.take(each, chosen.choice(NEEDS))
    return decider


def measure(bench: Bench, policy: str, nodes: int, bar_us: float) -> None:
    arrivals = Arrivals()
    decider = in_use(policy, nodes, arrivals)
    count, rounds = (SMOKE_ARRIVALS, 2) if bench.smoke else (ARRIVALS, ROUNDS)
    name, means_ns, placed = f"{policy}, {nodes} nodes", list[float](), 0
    for requests in (arrivals.some(count) for _ in range(rounds)):
        leave(decider, [], requests)
        started = time.process_time_ns()
        pods = decide_all(decider, requests)
        means_ns.append((time.process_time_ns() - started) / count)
        placed += len(pods)
        leave(decider, pods, requests)
    bench.engaged(f"{name}: pods are placed", placed > count * rounds * 0.9)
    timing = bench.samples(f"one decision, {name}", means_ns)
    bench.bar(f"one decision, {name}", timing.median_us, at_most=bar_us, unit="us")
    measure_forgetful(bench, name, decider, arrivals.some(min(count, WITHOUT_MEMORY)))


def measure_forgetful(bench: Bench, name: str, decider: Decider, requests: list[PodRequest]) -> None:
    taken_ns: list[float] = []
    for request in requests:
        started = time.process_time_ns()
        pods = decide_all(decider, [request], forgetful=True)
        taken_ns.append(time.process_time_ns() - started)
        leave(decider, pods, [])
    bench.samples(f"reference: asking all {name} each time", taken_ns)


def main() -> int:
    bench = Bench.from_argv("decision", libraries=["numpy", "msgspec"])
    bench.figure("pods on a node before", PODS_A_NODE)
    bench.figure("shapes", len({shape_of(request) for request in Arrivals().pool}))
    for policy, nodes, bar_us in CASES:
        measure(bench, policy, nodes // SMOKE_SMALLER if bench.smoke else nodes, bar_us)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
