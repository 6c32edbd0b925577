"""Pods on nodes, of any scheduler: what each holds there, and whether it is confirmed or only assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from partage_plugins.api import Allocation, Gang, Kind, NodeName, PodUid, Resources
from partage_plugins.api.keys import RESIZE
from partage_plugins.api.usage import Usage, usages
from partage_scheduler.cluster.verified import Held
from partage_scheduler.objects import ApiPod, gang_of
from partage_scheduler.predicates.needs import needs

_NO_SEATS: Final[Mapping[PodUid, PlacedPod]] = {}
_NO_NODES: Final[Mapping[NodeName, int]] = {}
_NO_KIND: Final[frozenset[Kind]] = frozenset()


class PlacedPod:
    """A pod on a node, assumed or confirmed."""

    __slots__ = ("_usages", "allocation", "assumed", "closes", "held", "is_resized", "needs", "node", "pod")

    def __init__(
        self, pod: ApiPod, node: NodeName, held: Held, *, needed: Resources | None = None, assumed: bool = False
    ) -> None:
        self.pod, self.node, self.held, self.assumed = pod, node, held, assumed
        self.needs = needs(pod) if needed is None else needed
        self.allocation = held.allocation
        """What counts; for a pod of unknown allocation it is derived from the node (`count`)."""
        self.closes = _NO_KIND
        """Kinds of which the node takes no new requests while the pod is there."""
        self.is_resized = held.allocation.gen > 1
        """Resized or about to be: what it has differs from the request in its specification."""
        self._usages: tuple[Usage, ...] | None = None

    def count(self, allocation: Allocation, closes: frozenset[Kind]) -> None:
        """Sets what counts for a pod of unknown allocation, on its node as it is now."""
        self.allocation, self.closes, self._usages = allocation, closes, None

    def rebook(self, allocation: Allocation) -> None:
        """Replaces what counts, until another allocation is read from the pod."""
        self.held = replace(self.held, allocation=allocation)
        self.is_resized = True
        self.count(allocation, self.closes)

    @property
    def usages(self) -> tuple[Usage, ...]:
        """What it uses of each card; computed at the first use."""
        if self._usages is None:
            self._usages = tuple(usages(self.allocation))
        return self._usages


class PlacedPods:
    def __init__(self) -> None:
        self._placed_pods: dict[PodUid, PlacedPod] = {}
        self._on: dict[NodeName, dict[PodUid, PlacedPod]] = {}
        self._gangs: dict[Gang, Counter[NodeName]] = {}
        self._priorities: Counter[int] = Counter()
        self._wishing: dict[PodUid, PlacedPod] = {}
        self._suspended: dict[PodUid, PlacedPod] = {}

    def __len__(self) -> int:
        return len(self._placed_pods)

    def get(self, uid: PodUid) -> PlacedPod | None:
        return self._placed_pods.get(uid)

    def node_of(self, uid: PodUid) -> NodeName | None:
        """The node that a pod is on or assumed on; None if it is pending."""
        placed = self._placed_pods.get(uid)
        return None if placed is None else placed.node

    def on(self, node: NodeName) -> tuple[PlacedPod, ...]:
        return tuple(self._on.get(node, _NO_SEATS).values())

    def of_gang(self, gang: Gang) -> Mapping[NodeName, int]:
        """Number of its pods on each node."""
        return self._gangs.get(gang, _NO_NODES)

    def placed_on(self, gang: Gang) -> int:
        """Number of its pods on nodes, assumed ones included."""
        return sum(self.of_gang(gang).values())

    def with_affinity(self) -> tuple[PlacedPod, ...]:
        """Pods that ask for a resize, or were resized."""
        return tuple(self._wishing.values())

    def of_namespace(self, namespace: str) -> Iterator[PlacedPod]:
        return (placed for placed in self._placed_pods.values() if placed.pod.namespace == namespace)

    def resized(self) -> Iterator[PlacedPod]:
        """Pods with other amounts than they first requested; few, if any."""
        return (each for each in self._wishing.values() if each.is_resized)

    def suspended(self) -> tuple[PlacedPod, ...]:
        """Pods whose allocation suspends them; few, if any."""
        return tuple(self._suspended.values())

    def has_lower(self, priority: int) -> bool:
        return min(self._priorities, default=priority) < priority

    def add(self, placed: PlacedPod) -> None:
        self._priorities[placed.pod.priority] += 1
        self._placed_pods[placed.pod.uid] = self._on.setdefault(placed.node, {})[placed.pod.uid] = placed
        self._note(placed)
        self._count(placed.pod, placed.node, 1)

    def remove(self, placed: PlacedPod) -> None:
        uid = placed.pod.uid
        del self._placed_pods[uid], self._on[placed.node][uid]
        self._wishing.pop(uid, None)
        self._suspended.pop(uid, None)
        if not self._on[placed.node]:
            del self._on[placed.node]
        priority = placed.pod.priority
        self._priorities[priority] -= 1
        if not self._priorities[priority]:
            del self._priorities[priority]
        self._count(placed.pod, placed.node, -1)

    def update(self, placed: PlacedPod, pod: ApiPod) -> None:
        if gang_of(pod) != gang_of(placed.pod):
            self._count(placed.pod, placed.node, -1)
            self._count(pod, placed.node, 1)
        placed.pod = pod  # same priority: a pod's priority never changes
        self._note(placed)

    def _note(self, placed: PlacedPod) -> None:
        if RESIZE in placed.pod.metadata.annotations or placed.is_resized:
            self._wishing[placed.pod.uid] = placed
        else:
            self._wishing.pop(placed.pod.uid, None)
        if placed.held.allocation.suspended is not None:
            self._suspended[placed.pod.uid] = placed
        else:
            self._suspended.pop(placed.pod.uid, None)

    def _count(self, pod: ApiPod, node: NodeName, sign: int) -> None:
        gang = gang_of(pod)
        if gang is not None:
            nodes = self._gangs.setdefault(gang, Counter())
            nodes[node] += sign
            if not nodes[node]:
                del nodes[node]
            if not nodes:
                del self._gangs[gang]


def counts_otherwise(pod: ApiPod, before: ApiPod) -> bool:
    """Whether predicates must be updated: what they count of the pod changed, or which pods it attracts."""
    return (
        pod.metadata.labels != before.metadata.labels
        or pod.is_going != before.is_going
        or pod.spec.containers != before.spec.containers
        or pod.spec.init_containers != before.spec.init_containers
        or pod.status.container_statuses != before.status.container_statuses
    )


def lower(one: Resources, other: Resources) -> bool:
    return one.cpu_milli < other.cpu_milli or one.memory_bytes < other.memory_bytes
