"""What predicates cost a pod at 5,000 nodes with 30,000 pods: asked where it can't be, put on a node, taken off.

A pod is what some hundred pods look like, each kind another one; the times are those of the processor. What a pod
costs the scheduler is the question and the putting; taking off is what its end costs. And what it costs to read a pod
as the API server writes it, and to say which nodes it would like.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

import msgspec

from bench.harness import Bench
from partage_plugins.vocabulary import Slot
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.predicates import Predicates
from support.objects import HOSTNAME, PREFERRED, REQUIRED, ZONE, affine, apart, labelled, near, node, pod
from unit.scheduler.pods_written import FULL_POD

NODES: Final = 5_000
PODS: Final = 30_000
APPS: Final = 300
ZONES: Final = 3
ROUNDS: Final = 9
PODS_A_ROUND: Final = 200
SMOKE_SMALLER: Final = 50
COPIES: Final = 500

TOLERATIONS: Final = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]
MINE: Final = labelled(app="app-7")
SPREAD: Final = {"maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MINE}
CASES: Final[Mapping[str, tuple[Mapping[str, Any], float]]] = {
    "plain": ({}, 40),
    "node selector": ({"nodeSelector": {"disk": "disk-1"}}, 50),
    "affinity": ({"affinity": affine(near(MINE))}, 120),
    "anti-affinity by node": ({"affinity": apart(near(MINE, HOSTNAME))}, 120),
    "spread over zones": ({"topologySpreadConstraints": [{"topologyKey": ZONE, **SPREAD}]}, 120),
    "spread over nodes": ({"topologySpreadConstraints": [{"topologyKey": HOSTNAME, **SPREAD}]}, 120),
    "host port": ({"hostNetwork": True}, 50),
}
"""What a pod says, and the bar in microseconds."""
PREFERRING: Final = {
    "nodeAffinity": {
        PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
    },
    "podAntiAffinity": {REQUIRED: [], PREFERRED: [{"weight": 9, "podAffinityTerm": near(MINE, HOSTNAME)}]},
}


def a_node(number: int) -> ApiNode:
    """Of one of three zones; every hundredth is tainted."""
    labels = {ZONE: f"zone-{number % ZONES}", "disk": f"disk-{number % 2}"}
    taints = ({"key": "dedicated", "value": "infra", "effect": "NoSchedule"},) if number % 100 == 0 else ()
    return node(f"node-{number:05}", labels=labels, taints=taints)


def a_pod(name: str, app: int = 7, **spec: Any) -> ApiPod:
    labels = {"app": f"app-{app}", "pod-template-hash": f"hash-{app}"}
    ports = ({"hostPort": 9000},) if spec.get("hostNetwork") else ()
    return pod(name, labels, requests={"cpu": "1", "memory": "1Gi"}, ports=ports, tolerations=TOLERATIONS, **spec)


def in_use(nodes: int, pods: int) -> Predicates:
    predicates = Predicates()
    for number in range(nodes):
        predicates.put_node(Slot(number), a_node(number))
    for number in range(pods):
        predicates.put_pod(Slot(number % nodes), a_pod(f"there-{number}", number % APPS))
    return predicates


def each_ns(call: Callable[[ApiPod], object], pods: list[ApiPod]) -> float:
    started = time.process_time_ns()
    for each in pods:
        call(each)
    return (time.process_time_ns() - started) / len(pods)


def measure(bench: Bench, predicates: Predicates, nodes: int, name: str) -> None:
    spec, bar_us = CASES[name]
    count, rounds = (5, 2) if bench.smoke else (PODS_A_ROUND, ROUNDS)
    slots = iter(range(1 << 60))
    asked, put, off = list[float](), list[float](), list[float]()

    def arrive(each: ApiPod) -> None:
        predicates.put_pod(Slot(next(slots) % nodes), each)

    def ask(each: ApiPod) -> None:
        """Each after another one came: nothing can be answered from memory alone."""
        predicates.unsupported(each)
        predicates.barred(each, nodes)
        arrive(each)

    for number in range(rounds):
        pods = [a_pod(f"{name}-{number}-{place}", **spec) for place in range(count)]
        both = each_ns(ask, pods)
        off.append(each_ns(lambda each: predicates.remove_pod(each.uid), pods))
        put.append(each_ns(arrive, pods))
        asked.append(both - put[-1])
        for each in pods:
            predicates.remove_pod(each.uid)
    bench.samples(f"{name}: put", put)
    bench.samples(f"{name}: taken off", off)
    bench.samples(f"{name}: asked", asked)
    bench.bar(f"{name}: asked and put", (median(asked) + median(put)) / 1000, at_most=bar_us, unit="us")


def measure_preferences(bench: Bench, predicates: Predicates, nodes: int) -> None:
    choosy = a_pod("choosy", affinity=PREFERRING)
    bench.engaged("something is preferred", predicates.preferences(choosy, nodes) is not None)
    bench.time("preferences", lambda: predicates.preferences(choosy, nodes))


def measure_reading(bench: Bench) -> None:
    """A page of pods, as large as they are in production."""
    padding = [{"name": f"VARIABLE_{number}", "value": "v" * 40} for number in range(30)]
    plain = {"metadata": FULL_POD["metadata"], "spec": {"containers": [{"name": "main", "env": padding}]}}
    decoder = msgspec.json.Decoder(tuple[ApiPod, ...])
    for name, each in {"with everything": FULL_POD, "with a long environment": plain}.items():
        page = msgspec.json.encode([each] * COPIES)
        bench.figure(f"bytes of a pod {name}", len(page) // COPIES)
        pages = bench.time(f"reading {COPIES} pods {name}", partial(decoder.decode, page))
        bench.bar(f"reading a pod {name}", pages.median_us / COPIES, at_most=50, unit="us")


def main() -> int:
    bench = Bench.from_argv("predicates", libraries=["numpy", "msgspec"])
    smaller = SMOKE_SMALLER if bench.smoke else 1
    nodes = NODES // smaller
    predicates = in_use(nodes, PODS // smaller)
    for name in CASES:
        measure(bench, predicates, nodes, name)
    measure_preferences(bench, predicates, nodes)
    measure_reading(bench)
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
