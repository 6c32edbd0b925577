"""A cluster with a transparent plugin, and predicates that only record what they get."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from partage_base.kube.undecodable import Undecodable
from partage_plugins.api import (
    Allocation,
    AnyKind,
    BudgetName,
    BudgetUse,
    Inventory,
    NodeName,
    PodRequest,
    PodUid,
    Reads,
    Ready,
    Resources,
    Slot,
    keys,
)
from partage_plugins.codecs import CRIT, decode_allocation
from partage_plugins.errors import PartageError
from partage_scheduler.cluster import Cluster, ClusterEvent, Unknown
from partage_scheduler.decision import Decision
from partage_scheduler.event_handlers import PodHandler
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.predicates import Predicates
from partage_scheduler.queue import Queue
from support.objects import READY, given, node, pod
from support.sides import MAIN, THING, Thing
from unit.scheduler.piles import GIB, World, pile, wanting

FREED, POD, NODE = frozenset((ClusterEvent.FREED,)), frozenset((ClusterEvent.POD,)), frozenset((ClusterEvent.NODE,))
INVENTORY = frozenset((ClusterEvent.INVENTORY,))
NONE: frozenset[ClusterEvent] = frozenset()
_FIRST, BUDGETS_TOO = Reads(), Reads(crit=CRIT)


class Noted(Predicates):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[Slot, ApiNode] = {}
        self.pods: dict[PodUid, tuple[Slot, ApiPod]] = {}

    def put_node(self, slot: Slot, node: ApiNode) -> None:
        self.nodes[slot] = node

    def remove_node(self, slot: Slot) -> None:
        assert not [uid for uid, (at, _) in self.pods.items() if at == slot], "its pods were removed before"
        del self.nodes[slot]

    def put_pod(self, slot: Slot, pod: ApiPod) -> None:
        assert slot in self.nodes
        self.pods[pod.uid] = slot, pod

    def remove_pod(self, uid: PodUid) -> None:
        del self.pods[uid]

    def state(self) -> dict[str, object]:
        """The recorded state, without slots, which depend on the order of events, and meaningless versions."""
        names = {slot: each.name for slot, each in self.nodes.items()}
        return {
            "nodes": {each.name: (each.metadata.labels, each.spec, each.status) for each in self.nodes.values()},
            "pods": {
                uid: (names[slot], each.metadata.labels, each.is_going, each.spec.containers)
                for uid, (slot, each) in self.pods.items()
            },
        }


def trusted(pod: ApiPod, kind: AnyKind = THING) -> Allocation | None:
    """Accept allocations with the signature `good`."""
    annotations = pod.metadata.annotations
    if annotations.get(keys.SIGNATURE) != "good":
        return None
    try:
        return decode_allocation(annotations[keys.ALLOCATION], (kind,))
    except PartageError:
        return None


def asking(pod: ApiPod) -> Unknown | None:
    """Request as many things as the annotation `things` says; a value that is no number is unreadable."""
    text = pod.metadata.annotations.get("things")
    if text is None:
        return None
    return Unknown(wanting(int(text), pod=pod.uid) if text.isdigit() else None)


def things(size: int, ready: Ready = READY, reads: Reads = _FIRST) -> Inventory:
    return Inventory(kinds=pile(size).kinds, ready=ready, reads=reads)


def piled(name: str, size: int, ready: Ready = READY, reads: Reads = _FIRST, **fields: object) -> ApiNode:
    """A participating node with `size` things."""
    return node(name, things(size, ready, reads), **fields)  # type: ignore[arg-type]  # whatever a node is made with


def holding(name: str, on: str, *ids: str, signature: str = "good", gen: int = 1, **fields: object) -> ApiPod:
    """A pod that runs on the node `on` and holds these things."""
    allocation = Allocation(
        gen=gen,
        pod=PodUid(f"uid-{name}"),
        node=NodeName(on),
        containers={MAIN: {THING.name: tuple(Thing(each) for each in ids)}},
    )
    return pod(name, node=on, annotations=given(allocation, signature), **fields)  # type: ignore[arg-type]


class NotedQueue(Queue):
    """A queue that records the cluster events for which it retries pods."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster_events = NONE

    def happened(self, cluster_events: Iterable[ClusterEvent], now: float) -> None:
        self.cluster_events |= frozenset(cluster_events)
        super().happened(cluster_events, now)


class Told:
    """A cluster's pod handler, called as by a watch. Returns the cluster events for which pods are then retried."""

    def __init__(self, cluster: Cluster) -> None:
        self._queue = NotedQueue()
        self._pods = PodHandler(cluster, self._queue, ours="partage-scheduler", clock=lambda: 0.0)

    def changed(self, *pods: ApiPod) -> frozenset[ClusterEvent]:
        for each in pods:
            self._pods.changed(each)
        return self._noted()

    def listed(self, pods: Iterable[ApiPod], *undecodable: Undecodable) -> frozenset[ClusterEvent]:
        self._pods.listed(pods, undecodable)
        for each in undecodable:
            self._pods.undecodable(each)
        return self._noted()

    def undecodable(self, which: Undecodable) -> None:
        self._pods.undecodable(which)

    def gone(self, uid: PodUid) -> frozenset[ClusterEvent]:
        self._pods.gone(pod("gone", uid=uid))
        return self._noted()

    def _noted(self) -> frozenset[ClusterEvent]:
        cluster_events, self._queue.cluster_events = self._queue.cluster_events, NONE
        return cluster_events


class Stage:
    """A cluster and its event handlers, with shorthands for tests."""

    def __init__(self, *nodes: ApiNode, kind: AnyKind = THING) -> None:
        self.world = World()
        self.rules = Noted()
        self.verified: list[str] = []
        self.cluster = Cluster(self.world.decider, self.rules, trusted=self.trusted, asks=asking, kinds=(kind,))
        self.event_handlers = Told(self.cluster)
        for each in nodes:
            self.cluster.node(each)
            self.cluster.heartbeat(each.name, 0.0, 0.0)

    def trusted(self, pod: ApiPod) -> Allocation | None:
        self.verified.append(pod.name)
        return trusted(pod)

    def pod(self, *pods: ApiPod) -> frozenset[ClusterEvent]:
        return self.event_handlers.changed(*pods)

    def assume(self, pod: ApiPod, count: int) -> Decision:
        """Schedule a pod that requests `count` things, and assume it on its node."""
        decision = self.world.decider.decide(wanting(count, pod=pod.uid, **room_of(pod)))
        assert decision is not None
        self.cluster.assume(pod, decision)
        return decision

    def left(self, name: str) -> tuple[int, int, int]:
        """Free things, CPU milli and GiB of a node."""
        slot = self.world.decider.slots.of(NodeName(name))
        free = self.world.decider.free(NodeName(name))
        assert slot is not None
        return len(self.world.plugin.free[slot]), free.cpu_milli, free.memory_bytes // GIB

    def why_not(
        self, *, now: float = 0.0, devices: int = 1, priority: int = 0, budget: bool = False
    ) -> dict[str, list[str]]:
        """The nodes that the pod can't use, by reason."""
        request = wanting(devices, pod="uid-new")
        if budget:
            request = replace(request, uses=(BudgetUse(MAIN, THING.name, BudgetName("pod")),))
        names = {self.world.decider.slots.of(each.name): str(each.name) for each in self.cluster.fleet.nodes}
        barred = self.cluster.barred(pod("new", priority=priority), request, now)
        return {
            str(each.reason): sorted(names[Slot(slot)] for slot in each.flags(len(names)).nonzero()[0].tolist())
            for each in barred
        }


def room_of(pod: ApiPod) -> dict[str, int]:
    requests = pod.spec.containers[0].resources.requests
    return {"cpu_milli": 1000 * int(requests.get("cpu", "0"))}


def bound(pod_: ApiPod, decision: Decision, signature: str = "good", version: int = 0) -> ApiPod:
    """The pod as the watch shows it after it is bound as decided."""
    requests = pod_.spec.containers[0].resources.requests
    return pod(
        pod_.name,
        node=decision.node,
        cpu=requests.get("cpu", ""),
        version=version,
        annotations={**pod_.metadata.annotations, **given(decision.allocation, signature)},
    )


def request_of(count: int) -> PodRequest:
    return wanting(count)


def total(cpu_milli: int, gib: int) -> Resources:
    return Resources(cpu_milli=cpu_milli, memory_bytes=gib * GIB)
