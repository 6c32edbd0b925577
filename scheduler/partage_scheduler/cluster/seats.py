"""Pods on nodes, of any scheduler: what each holds there, and whether it is confirmed or only assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from partage_plugins.api import Allocation, Gang, Kind, NodeName, PodUid, Resources
from partage_plugins.api.keys import RESIZE
from partage_plugins.api.usage import Usage, usages
from partage_plugins.codecs import read_gang
from partage_plugins.errors import DecodeError
from partage_scheduler.cluster.verified import Held
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.needs import needs

_NO_SEATS: Final[Mapping[PodUid, Seat]] = {}
_NO_NODES: Final[Mapping[NodeName, int]] = {}
_NO_KIND: Final[frozenset[Kind]] = frozenset()


class Seat:
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


def gang_of(pod: ApiPod) -> Gang | None:
    """The pod's gang; None if it has none, or a malformed one."""
    try:
        return read_gang(pod.namespace, pod.metadata.annotations, pod.metadata.labels)
    except DecodeError:
        return None


class Seats:
    def __init__(self) -> None:
        self._seats: dict[PodUid, Seat] = {}
        self._on: dict[NodeName, dict[PodUid, Seat]] = {}
        self._gangs: dict[Gang, Counter[NodeName]] = {}
        self._priorities: Counter[int] = Counter()
        self._wishing: dict[PodUid, Seat] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def get(self, uid: PodUid) -> Seat | None:
        return self._seats.get(uid)

    def node_of(self, uid: PodUid) -> NodeName | None:
        """The node that a pod is on or assumed on; None if it is pending."""
        seat = self._seats.get(uid)
        return None if seat is None else seat.node

    def on(self, node: NodeName) -> tuple[Seat, ...]:
        return tuple(self._on.get(node, _NO_SEATS).values())

    def of_gang(self, gang: Gang) -> Mapping[NodeName, int]:
        """Number of its pods on each node."""
        return self._gangs.get(gang, _NO_NODES)

    def seated(self, gang: Gang) -> int:
        """Number of its pods on nodes, assumed ones included."""
        return sum(self.of_gang(gang).values())

    def wishing(self) -> tuple[Seat, ...]:
        """Pods that ask for a resize, or were resized."""
        return tuple(self._wishing.values())

    def of_namespace(self, namespace: str) -> Iterator[Seat]:
        return (seat for seat in self._seats.values() if seat.pod.namespace == namespace)

    def resized(self) -> Iterator[Seat]:
        """Pods with other amounts than they first requested; few, if any."""
        return (each for each in self._wishing.values() if each.is_resized)

    def has_lower(self, priority: int) -> bool:
        return min(self._priorities, default=priority) < priority

    def add(self, seat: Seat) -> None:
        self._priorities[seat.pod.priority] += 1
        self._seats[seat.pod.uid] = self._on.setdefault(seat.node, {})[seat.pod.uid] = seat
        self._note(seat)
        self._count(seat.pod, seat.node, 1)

    def remove(self, seat: Seat) -> None:
        uid = seat.pod.uid
        del self._seats[uid], self._on[seat.node][uid]
        self._wishing.pop(uid, None)
        if not self._on[seat.node]:
            del self._on[seat.node]
        priority = seat.pod.priority
        self._priorities[priority] -= 1
        if not self._priorities[priority]:
            del self._priorities[priority]
        self._count(seat.pod, seat.node, -1)

    def update(self, seat: Seat, pod: ApiPod) -> None:
        if gang_of(pod) != gang_of(seat.pod):
            self._count(seat.pod, seat.node, -1)
            self._count(pod, seat.node, 1)
        seat.pod = pod  # same priority: a pod's priority never changes
        self._note(seat)

    def _note(self, seat: Seat) -> None:
        if RESIZE in seat.pod.metadata.annotations or seat.is_resized:
            self._wishing[seat.pod.uid] = seat
        else:
            self._wishing.pop(seat.pod.uid, None)

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
