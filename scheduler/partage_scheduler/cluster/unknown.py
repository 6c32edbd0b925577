"""What counts for pods on nodes whose allocation is not known, so that their devices are not given away.

The request of such a pod counts on every device of its node, tags included. If that can't be counted, because the kind
defines no `everywhere` or the request can't be read, the node takes no new requests of those kinds while the pod is
there.

This holds for pods that ask by resources, which are immutable. Labels and annotations prove nothing: anyone who may
edit a pod could close its node with them. A pod that asks by those has what its allocation says, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from partage_plugins.api import (
    Allocation,
    AnyKind,
    ContainerName,
    Inventory,
    Kind,
    NodeName,
    Pod,
    PodRequest,
    PodUid,
)
from partage_plugins.api.reasons import Reason
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.cluster.verified import Unknown
from partage_scheduler.decision import FilteredNodes, SlotTable
from partage_scheduler.objects import ApiPod, seen
from partage_scheduler.predicates.needs import asked_by

CLOSED: Final = Reason("unknown-pod", "node(s) had a pod whose share is not known")
_NO_KIND: Final[frozenset[Kind]] = frozenset()


class Asks:
    def __init__(self, read: Callable[[Pod], PodRequest], ours: Iterable[str]) -> None:
        """`ours` are the resources by which pods ask for devices; one that ends in a slash is a prefix."""
        self._read, self._ours = read, tuple(ours)

    def of(self, pod: ApiPod) -> Unknown | None:
        """The pod's request; None if it names none of our resources: then it holds only what an allocation says."""
        if not any(self._is_ours(name) for name, number in asked_by(pod).items() if number):
            return None
        try:
            request = self._read(seen(pod))
        except PluginBroken:
            raise
        except PartageError:
            return Unknown(None)
        return Unknown(request) if request.containers else None

    def _is_ours(self, name: str) -> bool:
        return any(name.startswith(each) if each.endswith("/") else name == each for each in self._ours)


class Everywhere(NamedTuple):
    """What counts for such a pod on its node."""

    allocation: Allocation
    closes: frozenset[Kind] = _NO_KIND
    """Kinds of which the node takes no new requests while the pod is there."""


def everywhere(
    unknown: Unknown, uid: PodUid, node: NodeName, inventory: Inventory, kinds: Iterable[AnyKind]
) -> Everywhere:
    """Counts a request on every device of a node."""
    if unknown.request is None:
        return Everywhere(_allocation(uid, node, {}), frozenset(kind.name for kind in kinds))
    closes: set[Kind] = set()
    containers: dict[ContainerName, dict[Kind, Any]] = {}
    for kind in kinds:
        part = inventory.part(kind)
        for container in unknown.request.containers:
            ask = container.of(kind)
            if ask is None or part is None:
                continue
            try:
                grants = None if kind.everywhere is None else tuple(kind.everywhere(ask, container.role, part))
            except Exception:  # noqa: BLE001 - of a plugin, whose mistake must not free its devices
                grants = None
            if grants is None:
                closes.add(kind.name)
            else:
                containers.setdefault(container.name, {})[kind.name] = grants
    return Everywhere(_allocation(uid, node, containers), frozenset(closes))


def _allocation(uid: PodUid, node: NodeName, containers: dict[ContainerName, dict[Kind, Any]]) -> Allocation:
    return Allocation(gen=0, pod=uid, node=node, containers=containers)


class Closed:
    """Nodes that take no new requests of some kinds; few, if any."""

    def __init__(self) -> None:
        self._placed_pods: dict[PodUid, PlacedPod] = {}

    def put(self, placed: PlacedPod) -> None:
        """Records a pod that closes its node to any kind; most don't."""
        if placed.closes:
            self._placed_pods[placed.pod.uid] = placed

    def remove(self, uid: PodUid) -> None:
        if self._placed_pods:
            self._placed_pods.pop(uid, None)

    def barred(self, request: PodRequest, slots: SlotTable) -> Iterator[FilteredNodes]:
        nodes = (
            [placed.node for placed in self._placed_pods.values() if placed.closes & request.kinds]
            if self._placed_pods
            else ()
        )
        if nodes and (flags := slots.flags(nodes)).any():
            yield FilteredNodes(CLOSED, flags)


UNREAD: Final = Reason("unread-pod", "node(s) had a pod that can't be read")


class UnreadPods:
    def __init__(self) -> None:
        self._nodes: dict[PodUid, NodeName] = {}

    def put(self, uid: PodUid, node: NodeName) -> None:
        self._nodes[uid] = node

    def remove(self, uid: PodUid) -> bool:
        """Returns whether the pod was undecodable before."""
        return self._nodes.pop(uid, None) is not None

    def clear(self) -> bool:
        """Forgets all, because existing ones are reported again; returns whether there were any."""
        had_some = bool(self._nodes)
        self._nodes.clear()
        return had_some

    def barred(self, slots: SlotTable) -> Iterator[FilteredNodes]:
        if self._nodes and (flags := slots.flags(self._nodes.values())).any():
            yield FilteredNodes(UNREAD, flags)
