"""One replay, by the protocol of the published experiments.

The pods of the workload arrive in an order given by the seed, then randomly chosen ones of them again, until their
requests reach the wanted percentage of all cards. Each is placed at once or never; none departs. At each step of
arrivals the allocated and the fragmented parts are recorded. The seed also orders the nodes' names, which break ties
between equal scores: names often sort by hardware, and must not bias a policy's result.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from partage_cli.simulation.measures import Meter
from partage_cli.simulation.results import Point, ReplayResult
from partage_cli.simulation.workloads import FleetNode, Workload, demand_milli, pod_ref
from partage_gpu.allocator.shapes import Typical
from partage_plugins.api import NodeName, PodRequest
from partage_plugins.errors import Refused
from partage_scheduler.decision import Decider


class Protocol(Struct, frozen=True, kw_only=True):
    """How much arrives, and the step between measurements."""

    arrivals_percent: int = 130
    step_percent: int = 5


class Replay:
    """One run on a decider without nodes."""

    def __init__(self, workload: Workload, decider: Decider, typical: Typical, seed: int) -> None:
        nodes = ordered(workload.nodes, seed)
        self._workload, self._decider, self._seed = workload, decider, seed
        self._meter = Meter(nodes, typical)
        for node in nodes:
            decider.add_node(node.name, node.inventory, node.total)

    def run(self, policy: str, protocol: Protocol) -> ReplayResult:
        capacity = self._meter.capacity_milli
        marks = iter(range(protocol.step_percent, protocol.arrivals_percent + 1, protocol.step_percent))
        points: list[Point] = []
        arrived = pods = unplaced = 0
        mark = next(marks, None)
        for request in arrivals(self._workload, self._seed, protocol.arrivals_percent):
            pods += 1
            arrived += demand_milli(request)
            unplaced += not self._place(replace(request, pod=pod_ref(pods)))
            while mark is not None and arrived * 100 >= mark * capacity:
                points.append(self._point(mark))
                mark = next(marks, None)
        return ReplayResult(
            policy=policy,
            seed=self._seed,
            points=tuple(points),
            pods=pods,
            unplaced=unplaced,
            idle_cards=self._meter.idle_cards,
        )

    def _place(self, request: PodRequest) -> bool:
        try:
            decision = self._decider.decide(request)
        except Refused:  # by node after node; counts as unplaced
            return False
        if decision is None:
            return False
        allocation = decision.allocation
        self._decider.take(allocation, request.needs)
        self._meter.take(allocation, request)
        return True

    def _point(self, arrived: int) -> Point:
        return Point(arrived=arrived, allocated=self._meter.allocated_percent, fragments=self._meter.fragment_percent)


def ordered(nodes: Sequence[FleetNode], seed: int) -> list[FleetNode]:
    """The nodes under names whose order the seed determines."""
    numbers = list(range(len(nodes)))
    random.Random(f"nodes {seed}").shuffle(numbers)  # noqa: S311  a replay must be the same tomorrow
    return [replace(node, name=NodeName(f"node-{number:06}")) for node, number in zip(nodes, numbers, strict=True)]


def arrivals(workload: Workload, seed: int, percent: int) -> Iterator[PodRequest]:
    """Requests in the order of this seed, until they reach this percentage of all cards."""
    chosen = random.Random(seed)  # noqa: S311  a replay must be the same tomorrow
    shuffled = list(workload.requests)
    chosen.shuffle(shuffled)
    wanted, asked = percent * workload.capacity_milli, 0
    for request in shuffled:
        if asked * 100 >= wanted:
            return
        asked += demand_milli(request)
        yield request
    if not asked:
        return
    while asked * 100 < wanted:
        request = chosen.choice(workload.requests)
        asked += demand_milli(request)
        yield request
