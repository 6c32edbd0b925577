"""Cost of one pod on a large fleet, from the watch's bytes to its confirmed binding: everything except I/O.

Every pod is decoded from the watch, counted, queued, popped, decided with all predicates, assumed, signed, and decoded
again and confirmed as bound. Mixed pods with the statistics of a production cluster arrive at a fleet that carries some
already. One thread without I/O, so its time is processor time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.decision import MIX, POOL_NODES, fleet
from bench.harness import Bench
from partage_cli.simulation.policies import decider_with
from partage_cli.simulation.synthetic import synthetic
from partage_cli.simulation.typical import typical_of
from partage_cli.simulation.workloads import FleetNode
from partage_plugins.api import GPU, NodeName, PodRequest, keys
from partage_scheduler.cluster import Asks, Cluster
from partage_scheduler.cycle import Bind, Cycle
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.predicates import Predicates
from partage_scheduler.queue import Queue
from rig.client.binding import signed
from support.objects import ZONE, node

NODES: Final = 5_000
PODS: Final = 10_000
SMALLER: Final = 50
BAR_US: Final = 400
CHUNK: Final = 500
"""Pods offered together; their bindings are in progress at the same time."""
POD: Final = msgspec.json.Decoder(ApiPod)

T = TypeVar("T")


def node_object(of: FleetNode) -> ApiNode:
    cpu, memory = f"{of.total.cpu_milli}m", str(of.total.memory_bytes)
    return node(of.name, of.inventory, {ZONE: f"z{len(of.name) % 3}"}, cpu=cpu, memory=memory)


def pod_object(
    pool: Sequence[PodRequest], number: int, node: NodeName | None = None, noted: dict[str, str] | None = None
) -> bytes:
    """A pod as the watch shows it, with the API server's additions; pods of one template are equal."""
    template = number % len(pool)
    request = pool[template]
    asks = list(request.of(GPU).values())
    limits = {}
    if asks:
        limits = {keys.GPU_MILLI: str(asks[0].share_milli * asks[0].count), keys.GPUS: str(asks[0].count)}
    models = {keys.MODELS: ",".join(asks[0].models)} if asks and asks[0].models else {}
    resources = {
        "requests": {"cpu": f"{request.needs.cpu_milli}m", "memory": str(request.needs.memory_bytes)} | limits,
        "limits": limits,
    }
    whole: dict[str, Any] = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"train-{number}",
            "generateName": "train-",
            "namespace": "team",
            "uid": f"0c8f6a1e-0000-4000-8000-{number:012}",
            "resourceVersion": str(number * 2 + (1 if node is None else 2)),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": f"train-{template}"},
            "annotations": models | (noted or {}),
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
            ],
        },
        "spec": {
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "containers": [
                {"name": "main", "image": "registry/train:1", "resources": resources, "imagePullPolicy": "Always"}
            ],
            "restartPolicy": "Never",
            "schedulerName": "partage-scheduler",
            "priority": 0,
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{why}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for why in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    if node is not None:
        whole["spec"]["nodeName"] = node
    return msgspec.json.encode(whole)


class Phases:
    """The processor time of each step."""

    def __init__(self) -> None:
        self.taken_ns: Counter[str] = Counter()

    def __call__(self, phase: str, call: Callable[..., T], *arguments: Any) -> T:
        started = time.thread_time_ns()
        try:
            return call(*arguments)
        finally:
            self.taken_ns[phase] += time.thread_time_ns() - started


class Scheduler:
    def __init__(self, nodes: int) -> None:
        self.pool = synthetic(POOL_NODES, mix=MIX).requests
        self.decider, self.side = decider_with("fgd+", typical_of(self.pool))
        self.predicates, self.key = Predicates(), Ed25519PrivateKey.generate()
        self.asks = Asks(self.side.requests, (keys.PREFIX,))
        self.cluster = Cluster(self.decider, self.predicates, trusted=lambda _pod: None, asks=self.asks.of)
        self.queue = Queue(placed_on=self.cluster.placed_pods.placed_on)
        self.cycle = Cycle(self.decider, self.side.requests, self.cluster, self.predicates)
        for each in fleet(nodes):
            self.cluster.node(node_object(each))
            self.cluster.heartbeat(each.name, 0.0, 0.0)

    def texts(self, first: int, count: int) -> list[bytes]:
        return [pod_object(self.pool, number) for number in range(first, first + count)]

    def signed(self, bind: Bind) -> dict[str, str]:
        return signed(bind.decision.allocation, self.key) if bind.decision.allocation.containers else {}

    def offered(self, pod: ApiPod) -> None:
        self.cluster.pod(pod)
        self.queue.offer(pod, 0.0)

    def shown(self, pod: ApiPod) -> None:
        self.queue.withdraw(pod.uid)
        self.queue.happened(self.cluster.pod(pod), 0.0)

    def place(self, texts: list[bytes], first: int, took: Phases) -> int:
        """Places pods, from bytes to bytes; returns how many were placed."""
        for text in texts:
            took("queue and count", self.offered, took("decode, as it comes", POD.decode, text))
        bound: list[bytes] = []
        while (waiting := took("next", self.queue.next, 0.0)) is not None:
            (verdict,) = took("decide and assume", self.cycle.decide, waiting, 0.0)
            if isinstance(verdict, Bind):
                noted = took("sign", self.signed, verdict)
                number = int(verdict.pod.name.rpartition("-")[2])
                bound.append(pod_object(self.pool, number, verdict.decision.node, noted))
            else:
                self.queue.failed(verdict.pod.uid, verdict.cluster_events, 0.0)
        for text in bound:
            took("confirm", self.shown, took("decode, as it is bound", POD.decode, text))
        return len(bound)


def main() -> int:
    bench = Bench.from_argv("cycle", libraries=["numpy", "msgspec", "cryptography"])
    smaller = SMALLER if bench.smoke else 1
    scheduler, took = Scheduler(NODES // smaller), Phases()
    scheduler.place(scheduler.texts(0, PODS // smaller), 0, Phases())  # all shapes are known, and every node has some
    placed, count, totals = 0, PODS // smaller, list[float]()
    for first in range(count, 2 * count, min(CHUNK, count)):
        texts = scheduler.texts(first, min(CHUNK, count))
        before = took.taken_ns.total()
        placed += scheduler.place(texts, first, took)
        totals.append((took.taken_ns.total() - before) / len(texts))
    bench.engaged("pods are placed", placed > 0.9 * count)
    for phase, taken_ns in took.taken_ns.items():
        bench.figure(f"{phase}, us", round(taken_ns / count / 1000, 1))
    timing = bench.samples("one pod in all", totals)
    bench.figure("pods a second", round(1e6 / timing.median_us))
    bench.bar("one pod in all", timing.median_us, at_most=BAR_US, unit="us")
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
