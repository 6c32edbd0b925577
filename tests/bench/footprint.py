"""Memory of the scheduler with 5,000 nodes and 30,000 pods, with hostile pods and afterwards.

The scheduler's parts without I/O, fed as by a watch. Then, for each way to make a pod large, a hundred pods of 1.4 MiB
arrive, some bound and some pending, are decided and deleted; and as many with as much as is allowed. The memory is that
of the process; the processor time of the slowest step is printed too.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from bench.cycle import NODES, POD, SMALLER, Scheduler, pod_object
from bench.harness import Bench
from partage_plugins.api import NodeName, PodUid
from partage_scheduler.objects.excess import OF_NODES, OF_PODS
from support.objects import apart, on_terms
from support.procfs import status

PODS: Final = 30_000
HOSTILE: Final = 100
HOSTILE_BYTES: Final = 1_400 << 10
MOST_MIB: Final = 400
Json = dict[str, Any]
Fill = Callable[[Json, str, int], object]
"""Writes this many things of one sort into a pod, different ones into each."""


def resident_mib() -> float:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status(os.getpid(), "VmRSS") / 1024


def _main(pod: Json) -> Json:
    main: Json = pod["spec"]["containers"][0]
    return main


def _amounts(pod: Json, own: str, count: int) -> None:
    _main(pod)["resources"] = {"limits": {f"{own}.example.com/{number}": "1" for number in range(count)}}


def _of_nodes(pod: Json, own: str, count: int) -> None:
    terms = [{"matchExpressions": [{"key": f"{own}-{number}", "operator": "Exists"}]} for number in range(count)]
    pod["spec"]["affinity"] = on_terms(*terms)


def _of_pods(pod: Json, own: str, count: int) -> None:
    terms = [
        {
            "topologyKey": "kubernetes.io/hostname",
            "namespaceSelector": {},
            "labelSelector": {"matchExpressions": [{"key": f"{own}-{number}", "operator": "DoesNotExist"}]},
        }
        for number in range(count)
    ]
    pod["spec"]["affinity"] = apart(*terms)


def _values(pod: Json, own: str, count: int) -> None:
    values = [f"{own}-{number}" for number in range(count)]
    said = {"key": "kubernetes.io/hostname", "operator": "In", "values": values}
    pod["spec"]["affinity"] = on_terms({"matchExpressions": [said]})


def _labels(pod: Json, own: str, count: int) -> None:
    pod["metadata"]["labels"] = {f"{own}-{number}": "x" for number in range(count)}


def _annotations(pod: Json, own: str, count: int) -> None:
    pod["metadata"]["annotations"] = {f"{own}-{number}": "x" for number in range(count)}


def _ports(pod: Json, own: str, count: int) -> None:
    block = sum(own.encode()) % 200
    _main(pod)["ports"] = [
        {"hostPort": 80, "hostIP": f"10.{block}.{number >> 8}.{number % 256}"} for number in range(count)
    ]


def _tolerations(pod: Json, own: str, count: int) -> None:
    pod["spec"]["tolerations"] = [{"key": f"{own}-{number}"} for number in range(count)]


def _containers(pod: Json, own: str, count: int) -> None:
    pod["spec"]["containers"] = [
        {"name": f"{own}-{number}", "resources": {"requests": {"cpu": "1m"}}} for number in range(count)
    ]


def _volumes(pod: Json, own: str, count: int) -> None:
    pod["spec"]["volumes"] = [
        {"name": f"{own}-{number}", "persistentVolumeClaim": {"claimName": f"{own}-{number}"}}
        for number in range(count)
    ]


FILLS: Final[Mapping[str, tuple[Fill, int]]] = {
    "resources": (_amounts, 500),
    "terms about nodes": (_of_nodes, OF_NODES),
    "terms about pods": (_of_pods, OF_PODS),
    "values": (_values, 4000),
    "labels": (_labels, 250),
    "annotations": (_annotations, 1000),
    "ports": (_ports, 500),
    "tolerations": (_tolerations, 250),
    "containers": (_containers, 500),
    "volumes": (_volumes, 500),
}


class Hostile:
    def __init__(self, scheduler: Scheduler, fill: Fill, count: int) -> None:
        self._scheduler, self._fill, self._count = scheduler, fill, count
        self._nodes = [node.name for node in scheduler.cluster.fleet.nodes]
        self.slowest_s = 0.0

    def come(self, pods: int) -> None:
        for number in range(pods):
            text = self._text(number, self._nodes[number % len(self._nodes)] if number % 2 else None)
            started = time.thread_time()
            pod = POD.decode(text)
            self._scheduler.offered(pod) if not pod.node else self._scheduler.shown(pod)
            self.slowest_s = max(self.slowest_s, time.thread_time() - started)
        while True:
            started = time.thread_time()
            waiting = self._scheduler.queue.next(0.0)
            if waiting is None:
                return
            self._scheduler.cycle.decide(waiting, 0.0)
            self.slowest_s = max(self.slowest_s, time.thread_time() - started)

    def go(self, pods: int) -> None:
        for number in range(pods):
            self._scheduler.cluster.pod_gone(_uid(number, id(self)))
            self._scheduler.queue.withdraw(_uid(number, id(self)))

    def _text(self, number: int, node: NodeName | None) -> bytes:
        pod = msgspec.json.decode(pod_object(self._scheduler.pool, number, node), type=dict[str, Any])
        pod["metadata"] |= {"uid": _uid(number, id(self)), "name": f"hostile-{number}", "namespace": "theirs"}
        self._fill(pod, f"h{number}", self._count)
        return msgspec.json.encode(pod)


def _uid(number: int, sort: int) -> PodUid:
    return PodUid(f"hostile-{sort}-{number}")


def as_large(fill: Fill) -> int:
    """How many of a sort make a pod as large as the API server accepts."""
    some: Json = {"metadata": {}, "spec": {"containers": [{}]}}
    fill(some, "h00", 1000)
    return HOSTILE_BYTES * 1000 // len(msgspec.json.encode(some))


def settled(scheduler: Scheduler, pods: int) -> None:
    """Adds this many bound pods, of which one in ten has a label of its own, as pods of jobs have."""
    nodes = [node.name for node in scheduler.cluster.fleet.nodes]
    for number in range(pods):
        pod = msgspec.json.decode(pod_object(scheduler.pool, number, nodes[number % len(nodes)]), type=dict[str, Any])
        pod["metadata"]["uid"] = f"there-{number}"
        if number % 10 == 0:
            pod["metadata"]["labels"]["job"] = f"job-{number}"
        pod["metadata"]["annotations"]["cni.example.com/network-status"] = "x" * 600
        scheduler.shown(POD.decode(msgspec.json.encode(pod)))


def sorts() -> Iterator[tuple[str, Fill, int]]:
    for name, (fill, allowed) in FILLS.items():
        yield f"{name}, as many as are allowed", fill, allowed
        yield f"{name}, 1.4 MiB", fill, as_large(fill)


def main() -> int:
    """Fills the scheduler, and adds and removes all hostile pods."""
    bench = Bench.from_argv("footprint", libraries=["numpy", "msgspec"])
    smaller = SMALLER if bench.smoke else 1
    scheduler = Scheduler(NODES // smaller)
    bench.figure("resident with nodes, MiB", round(resident_mib()))
    settled(scheduler, PODS // smaller)
    bench.engaged("nodes and pods are there", len(scheduler.cluster.fleet) == NODES // smaller)
    bench.bar("resident with nodes and pods", resident_mib(), at_most=MOST_MIB, unit="MiB")
    count, highest = max(2, HOSTILE // smaller), 0.0
    for name, fill, number in sorts():
        hostile = Hostile(scheduler, fill, number)
        hostile.come(count)
        there = resident_mib()
        highest = max(highest, there)
        bench.figure(f"{name}: resident, MiB", round(there))
        bench.figure(f"{name}: slowest step, ms", round(1000 * hostile.slowest_s, 1))
        hostile.go(count)
    bench.bar("resident with hostile pods", highest, at_most=MOST_MIB, unit="MiB")
    bench.bar("resident after they are gone", resident_mib(), at_most=MOST_MIB, unit="MiB")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
