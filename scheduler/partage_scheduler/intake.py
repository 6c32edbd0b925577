"""What is heard of the cluster goes to those whom it concerns: who counts it, who waits for it. Pure.

Lists and changes may come late, twice or out of order; only news goes on. A pod that was bound is not offered again by
what was said before its binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

from partage_plugins.vocabulary import PodUid
from partage_scheduler.cluster import Cause, Cluster
from partage_scheduler.cluster.versions import Versions
from partage_scheduler.objects import (
    ApiBudget,
    ApiClaim,
    ApiCsiNode,
    ApiLease,
    ApiNamespace,
    ApiNode,
    ApiPod,
    ApiStorageClass,
    ApiVolume,
)
from partage_scheduler.predicates import Predicates
from partage_scheduler.preempting import Budgets
from partage_scheduler.queueing import Queue

Causes = frozenset[Cause]
Clock = Callable[[], float]
_NAMESPACE: Final = frozenset((Cause.NAMESPACE,))
_VOLUME: Final = frozenset((Cause.VOLUME,))


class Pods:
    """Everybody's pods: those on nodes count there, ours that are on none are to be placed."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        *,
        ours: str,
        clock: Clock,
        let_go: Callable[[PodUid], None] = lambda _uid: None,
    ) -> None:
        """`ours` is the name of the scheduler that our pods ask for; `let_go` hears of those that wait no more."""
        self._cluster, self._queue, self._ours = cluster, queue, ours
        self._clock, self._let_go = clock, let_go
        self._seen = Versions()
        self._placed: set[PodUid] = set()
        """Bound by us, and not yet seen on their nodes."""
        self._since: dict[PodUid, float] = {}
        """Pods that wait, and since when."""

    def waits_since(self, uid: PodUid) -> float | None:
        """When a pod that is to be placed was heard of first."""
        return self._since.get(uid)

    def placed(self, uid: PodUid) -> None:
        """It is bound: what was said of it before does not matter any more."""
        if uid in self._since:
            self._placed.add(uid)
        self._ended(uid)

    def listed(self, items: Iterable[ApiPod]) -> None:
        """All pods that there are."""
        pods = list(items)
        there, now = {pod.uid for pod in pods}, self._clock()
        for uid in [PodUid(uid) for uid in self._seen.known() if uid not in there]:
            self._seen.gone(uid)
            self._forget(uid)
        causes = self._cluster.relisted_pods(pods, now)
        for pod in pods:
            if self._seen.is_news(pod.uid, pod.metadata.resource_version):
                self._offer(pod, now)
        self._queue.happened(causes, now)

    def changed(self, item: ApiPod) -> None:
        """A pod that came or changed."""
        if not self._seen.is_news(item.uid, item.metadata.resource_version):
            return
        now = self._clock()
        causes = self._cluster.pod(item, now)
        self._offer(item, now)
        self._queue.happened(causes, now)

    def gone(self, item: ApiPod) -> None:
        """A pod that is no more, or has ended."""
        self._seen.gone(item.uid)
        self._forget(item.uid)
        now = self._clock()
        self._queue.happened(self._cluster.pod_gone(item.uid, now), now)

    def _offer(self, pod: ApiPod, now: float) -> None:
        uid = pod.uid
        if pod.node or pod.is_terminal or pod.is_going or pod.spec.scheduler_name != self._ours:
            self._forget(uid)
        elif uid not in self._placed:
            self._since.setdefault(uid, now)
            self._queue.offer(pod, now)

    def _forget(self, uid: PodUid) -> None:
        self._placed.discard(uid)
        self._ended(uid)

    def _ended(self, uid: PodUid) -> None:
        if self._since.pop(uid, None) is not None:
            self._queue.withdraw(uid)
            self._let_go(uid)


class Nodes:
    """All nodes."""

    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock) -> None:
        self._cluster, self._queue, self._clock = cluster, queue, clock

    def listed(self, items: Iterable[ApiNode]) -> None:
        """All that there are."""
        now = self._clock()
        self._queue.happened(self._cluster.relisted_nodes(items, now), now)

    def changed(self, item: ApiNode) -> None:
        """One that came or changed."""
        now = self._clock()
        self._queue.happened(self._cluster.node(item, now), now)

    def gone(self, item: ApiNode) -> None:
        """One that is no more."""
        now = self._clock()
        self._queue.happened(self._cluster.node_gone(item.name, now, uid=item.metadata.uid), now)


class Heartbeats:
    """The Leases by which advertisers say that what their nodes say is true."""

    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock, wall_clock: Clock) -> None:
        """`wall_clock` is compared with `clock` once: Leases have times of day, and those jump."""
        self._cluster, self._queue, self._clock = cluster, queue, clock
        self._ahead = wall_clock() - clock()
        self._known: set[str] = set()

    def listed(self, items: Iterable[ApiLease]) -> None:
        """All that there are."""
        leases = {lease.name: lease for lease in items}
        for name in self._known - leases.keys():
            self._beat(name, None)
        for lease in leases.values():
            self.changed(lease)

    def changed(self, item: ApiLease) -> None:
        """One that was renewed."""
        self._known.add(item.name)
        self._beat(item.name, _moment(item.spec.renew_time))

    def gone(self, item: ApiLease) -> None:
        """One that is no more."""
        self._known.discard(item.name)
        self._beat(item.name, None)

    def _beat(self, name: str, at: float | None) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.heartbeat(name, None if at is None else at - self._ahead, now), now)


class _Item(Protocol):
    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=_Item)


class Told(Generic[K]):
    """Objects that only predicates know, by their names and namespaces."""

    def __init__(
        self,
        put: Callable[[K], None],
        remove: Callable[[K], None],
        *,
        causes: Causes,
        queue: Queue,
        clock: Clock,
    ) -> None:
        self._put, self._remove, self._causes = put, remove, causes
        self._queue, self._clock = queue, clock
        self._known: dict[tuple[str, str], K] = {}

    def listed(self, items: Iterable[K]) -> None:
        """All that there are."""
        there = {_key(item): item for item in items}
        for key in self._known.keys() - there.keys():
            self._remove(self._known.pop(key))
        for key, item in there.items():
            self._known[key] = item
            self._put(item)
        self._happened()

    def changed(self, item: K) -> None:
        """One that came or changed."""
        self._known[_key(item)] = item
        self._put(item)
        self._happened()

    def gone(self, item: K) -> None:
        """One that is no more."""
        if self._known.pop(_key(item), None) is not None:
            self._remove(item)
            self._happened()

    def _happened(self) -> None:
        self._queue.happened(self._causes, self._clock())


class Intake:
    """All of it; a sink for each kind."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        cluster: Cluster,
        predicates: Predicates,
        queue: Queue,
        *,
        ours: str,
        clock: Clock,
        wall_clock: Clock,
        let_go: Callable[[PodUid], None] = lambda _uid: None,
        budgets: Budgets | None = None,
    ) -> None:
        self.pods = Pods(cluster, queue, ours=ours, clock=clock, let_go=let_go)
        self.nodes = Nodes(cluster, queue, clock=clock)
        self.heartbeats = Heartbeats(cluster, queue, clock=clock, wall_clock=wall_clock)

        def told(put: Callable[[K], None], remove: Callable[[K], None], causes: Causes = _VOLUME) -> Told[K]:
            return Told(put, remove, causes=causes, queue=queue, clock=clock)

        self.namespaces: Told[ApiNamespace] = told(
            predicates.put_namespace, lambda item: predicates.remove_namespace(item.name), _NAMESPACE
        )
        self.volumes: Told[ApiVolume] = told(predicates.put_volume, lambda item: predicates.remove_volume(item.name))
        self.claims: Told[ApiClaim] = told(
            predicates.put_claim, lambda item: predicates.remove_claim(item.namespace, item.name)
        )
        self.classes: Told[ApiStorageClass] = told(
            predicates.put_storage_class, lambda item: predicates.remove_storage_class(item.name)
        )
        self.csi_nodes: Told[ApiCsiNode] = told(
            predicates.put_csi_node, lambda item: predicates.remove_csi_node(item.name)
        )
        of_owners = budgets or Budgets()
        self.budgets: Told[ApiBudget] = told(
            of_owners.put, lambda item: of_owners.remove(item.namespace, item.name), frozenset()
        )


def _key(item: _Item) -> tuple[str, str]:
    return str(getattr(item, "namespace", "")), item.name


def _moment(text: str | None) -> float | None:
    """A time as Leases have it, in seconds; None where it says none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
