"""Event handlers: pass changes of API objects to the cluster cache and the queue. Pure.

Lists and watch events may come late, twice or out of order; only newer versions are passed on. A bound pod is not
queued again by events from before its binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

from partage_base.kube.undecodable import Undecodable
from partage_plugins.api import PodUid
from partage_plugins.api.keys import ALLOCATION, RESIZED_PODS, SIGNATURE, SUSPENDED_PODS
from partage_plugins.codecs.suspension import READ_REPORTS, Reports
from partage_plugins.errors import DecodeError
from partage_scheduler.cluster import Cluster, ClusterEvent
from partage_scheduler.objects import ApiLease, ApiNode, ApiPod, ApiResourceClaim
from partage_scheduler.objects.base import Meta
from partage_scheduler.objects.specs import PodSpec
from partage_scheduler.predicates import Predicates
from partage_scheduler.preemption import Budgets
from partage_scheduler.queue import Queue
from partage_scheduler.quotas import Quotas
from partage_scheduler.versions import Versions

Causes = frozenset[ClusterEvent]
Clock = Callable[[], float]
_NAMESPACE, _CLAIM, _VOLUME = (
    frozenset((each,)) for each in (ClusterEvent.NAMESPACE, ClusterEvent.CLAIM, ClusterEvent.VOLUME)
)
_FREED: Final = frozenset((ClusterEvent.CLAIM, ClusterEvent.FREED))


class PodHandler:
    """Handles pods of all schedulers: counts those on nodes, queues this scheduler's pods without a node."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        *,
        ours: str,
        clock: Clock,
        let_go: Callable[[PodUid], None] = lambda _uid: None,
    ) -> None:
        """`ours` is our schedulerName; `let_go` is called for pods that are no longer pending."""
        self._cluster, self._queue, self._ours = cluster, queue, ours
        self._clock, self._let_go = clock, let_go
        self._seen = Versions()
        self._placed: set[PodUid] = set()
        """Pods bound by us that the watch has not shown on their nodes yet."""
        self._since: dict[PodUid, float] = {}
        """When each pending pod was first seen."""

    def waits_since(self, uid: PodUid) -> float | None:
        """When a pending pod was first seen."""
        return self._since.get(uid)

    def placed(self, uid: PodUid) -> None:
        """Marks a pod as bound, so that events from before its binding are ignored."""
        if uid in self._since:
            self._placed.add(uid)
        self._waits_no_more(uid)

    def listed(self, items: Iterable[ApiPod], undecodable: Sequence[Undecodable] = (), /) -> None:
        """Handles a full list; undecodable pods keep what they held."""
        pods, now = {pod.uid: pod for pod in items}, self._clock()
        there = pods.keys() | {PodUid(each.uid) for each in undecodable}
        cluster_events = self._cluster.none_unread()
        for uid in [PodUid(uid) for uid in self._seen.known() if uid not in there]:
            cluster_events |= self._ended(uid)
        news = [pod for pod in pods.values() if self._seen.is_news(pod.uid, pod.metadata.resource_version)]
        for pod in news:
            cluster_events |= self._told(pod)
        for pod in news:
            self._offer(pod, now)
        self._queue.happened(cluster_events, now)

    def changed(self, item: ApiPod) -> None:
        if not self._seen.is_news(item.uid, item.metadata.resource_version):
            return
        now = self._clock()
        if item.is_refused and item.spec.scheduler_name == self._ours:
            self._cluster.refused(item, now)
        cluster_events = self._told(item)
        self._offer(item, now)
        self._queue.happened(cluster_events, now)

    def gone(self, item: ApiPod) -> None:
        self._queue.happened(self._ended(item.uid), self._clock())

    def undecodable(self, which: Undecodable) -> None:
        """Handles an undecodable pod, whose requests and allocation are not known."""
        uid = PodUid(which.uid)
        if which.is_gone:
            self._queue.happened(self._ended(uid), self._clock())
        else:
            self._forget(uid)
            self._cluster.pod_unread(_legible(which))
            self._seen.exists(uid)

    def _told(self, pod: ApiPod) -> frozenset[ClusterEvent]:
        return self._ended(pod.uid) if pod.is_terminal else self._cluster.pod(pod)

    def _ended(self, uid: PodUid) -> frozenset[ClusterEvent]:
        """Drops the pod for good; late events of it are ignored."""
        self._seen.gone(uid)
        self._forget(uid)
        return self._cluster.pod_gone(uid)

    def _offer(self, pod: ApiPod, now: float) -> None:
        uid = pod.uid
        if pod.node or pod.is_terminal or pod.is_going or pod.spec.scheduler_name != self._ours:
            self._forget(uid)
        elif uid not in self._placed:
            self._since.setdefault(uid, now)
            self._queue.offer(pod, now)

    def _forget(self, uid: PodUid) -> None:
        self._placed.discard(uid)
        self._waits_no_more(uid)

    def _waits_no_more(self, uid: PodUid) -> None:
        if self._since.pop(uid, None) is not None:
            self._queue.withdraw(uid)
            self._let_go(uid)


def _legible(which: Undecodable) -> ApiPod:
    """The decodable part of a pod that shows what it holds, and where."""
    (namespace, name), notes = which.key, which.annotations
    noted = {key: notes[key] for key in (ALLOCATION, SIGNATURE) if key in notes}
    meta = Meta(name=name, namespace=namespace, uid=which.uid, resource_version=which.version, annotations=noted)
    return ApiPod(metadata=meta, spec=PodSpec(node_name=which.node))


class NodeHandler:
    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock) -> None:
        self._cluster, self._queue, self._clock = cluster, queue, clock

    def listed(self, items: Iterable[ApiNode], _unread: Sequence[Undecodable] = (), /) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.relisted_nodes(items), now)

    def changed(self, item: ApiNode) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.node(item), now)

    def gone(self, item: ApiNode) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.node_gone(item.name, uid=item.metadata.uid), now)

    def undecodable(self, which: Undecodable) -> None:
        """Treats an undecodable node as deleted."""
        now = self._clock()
        self._queue.happened(self._cluster.node_gone(which.key[1]), now)


class HeartbeatHandler:
    """Handles the Leases by which advertisers confirm that their nodes' inventories are current."""

    def __init__(
        self, cluster: Cluster, queue: Queue, *, clock: Clock, wall_clock: Clock, on_unread: Callable[[str, str], None]
    ) -> None:
        """`wall_clock` is compared with `clock` once: Leases carry wall-clock times, and the wall clock may jump.

        `on_unread` is called with a node whose reports on suspended pods can't be read, and why.
        """
        self._cluster, self._queue, self._clock, self._on_unread = cluster, queue, clock, on_unread
        self._ahead = wall_clock() - clock()
        self.resized: dict[str, str] = {}
        """Annotation of each existing Lease that names resized pods, by node."""
        self._reports: dict[str, str] = {}
        """Annotation of each Lease by which its node reports on suspended pods."""

    def listed(self, items: Iterable[ApiLease], _unread: Sequence[Undecodable] = (), /) -> None:
        leases = {lease.name: lease for lease in items}
        for name in self.resized.keys() - leases.keys():
            self._no_more(name)
        for lease in leases.values():
            self.changed(lease)

    def changed(self, item: ApiLease) -> None:
        self.resized[item.name] = item.metadata.annotations.get(RESIZED_PODS, "")
        self._report(item.name, item.metadata.annotations.get(SUSPENDED_PODS, ""))
        self._beat(item.name, _moment(item.spec.renew_time))

    def gone(self, item: ApiLease) -> None:
        self._no_more(item.name)

    def undecodable(self, which: Undecodable) -> None:
        self._no_more(which.key[1])

    def _report(self, name: str, text: str) -> None:
        if text != self._reports.pop(name, ""):
            self._queue.happened(self._cluster.reported(name, self._read(name, text)), self._clock())
        if text:
            self._reports[name] = text

    def _read(self, name: str, text: str) -> Reports:
        """The reports of a node; none if they can't be read, so that its suspended pods count with their cards."""
        try:
            return READ_REPORTS.read(text) if text else {}
        except DecodeError as error:
            self._on_unread(name, str(error))
            return {}

    def _no_more(self, name: str) -> None:
        self.resized.pop(name, None)
        self._report(name, "")
        self._beat(name, None)

    def _beat(self, name: str, at: float | None) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.heartbeat(name, None if at is None else at - self._ahead, now), now)


class _Item(Protocol):
    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=_Item)


class ObjectHandler(Generic[K]):
    """Handles objects that are identified by namespace and name, such as volumes and quotas."""

    def __init__(
        self,
        put: Callable[[K], None],
        remove: Callable[[K], None],
        *,
        cluster_events: Causes,
        queue: Queue,
        clock: Clock,
    ) -> None:
        self._put, self._remove, self._cluster_events = put, remove, cluster_events
        self._queue, self._clock = queue, clock
        self._known: dict[tuple[str, str], K] = {}

    def listed(self, items: Iterable[K], _unread: Sequence[Undecodable] = (), /) -> None:
        """Handles a full list; undecodable objects count as deleted."""
        there = {_key(item): item for item in items}
        for key in self._known.keys() - there.keys():
            self._remove(self._known.pop(key))
        for key, item in there.items():
            self._known[key] = item
            self._put(item)
        self._happened()

    def changed(self, item: K) -> None:
        self._known[_key(item)] = item
        self._put(item)
        self._happened()

    def gone(self, item: K) -> None:
        if self._known.pop(_key(item), None) is not None:
            self._remove(item)
            self._happened()

    def undecodable(self, which: Undecodable) -> None:
        """Treats an undecodable object as deleted; pods that need it stay pending."""
        known = self._known.pop(which.key, None)
        if known is not None:
            self._remove(known)
            self._happened()

    def _happened(self) -> None:
        self._queue.happened(self._cluster_events, self._clock())


def _key(item: _Item) -> tuple[str, str]:
    return str(getattr(item, "namespace", "")), item.name


def _moment(text: str | None) -> float | None:
    """The time as a POSIX timestamp; None if the Lease has none, or a malformed one."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


class ResourceClaimHandler:
    """Handles ResourceClaims. An undecodable claim keeps what it held, because its cards are still in use."""

    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock) -> None:
        self._book, self._queue, self._clock = cluster.claims, queue, clock
        self._seen = Versions()
        self._known: dict[str, ApiResourceClaim] = {}

    def listed(self, items: Iterable[ApiResourceClaim], undecodable: Sequence[Undecodable] = (), /) -> None:
        claims = {item.uid: item for item in items}
        there = claims.keys() | {each.uid for each in undecodable}
        for uid in [uid for uid in self._known if uid not in there]:
            self.gone(self._known[uid])
        for claim in claims.values():
            self.changed(claim)

    def changed(self, item: ApiResourceClaim) -> None:
        """Handles a claim from the watch or from the response to a write; the newer version counts."""
        if self._seen.is_news(item.uid, item.metadata.resource_version):
            self._known[item.uid] = item
            self._queue.happened(_FREED if self._book.put(item) else _CLAIM, self._clock())

    def gone(self, item: ApiResourceClaim) -> None:
        self._seen.gone(item.uid)
        self._known.pop(item.uid, None)
        self._queue.happened(_FREED if self._book.remove(item) else _CLAIM, self._clock())

    def undecodable(self, which: Undecodable) -> None:
        known = self._known.get(which.uid)
        if which.is_gone and known is not None:
            self.gone(known)


class EventHandlers:
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
        on_unread: Callable[[str, str], None] = lambda _node, _why: None,
        budgets: Budgets | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self.pods = PodHandler(cluster, queue, ours=ours, clock=clock, let_go=let_go)
        self.nodes = NodeHandler(cluster, queue, clock=clock)
        self.heartbeats = HeartbeatHandler(cluster, queue, clock=clock, wall_clock=wall_clock, on_unread=on_unread)

        def told(
            put: Callable[[K], None], remove: Callable[[K], None], cluster_events: Causes = _VOLUME
        ) -> ObjectHandler[K]:
            return ObjectHandler(put, remove, cluster_events=cluster_events, queue=queue, clock=clock)

        self.namespaces = told(
            predicates.put_namespace, lambda item: predicates.remove_namespace(item.name), _NAMESPACE
        )
        self.volumes = told(predicates.put_volume, lambda item: predicates.remove_volume(item.name))
        self.claims = told(predicates.put_claim, lambda item: predicates.remove_claim(item.namespace, item.name))
        self.classes = told(predicates.put_storage_class, lambda item: predicates.remove_storage_class(item.name))
        self.csi_nodes = told(predicates.put_csi_node, lambda item: predicates.remove_csi_node(item.name))
        self.resource_claims = ResourceClaimHandler(cluster, queue, clock=clock)
        self.device_classes = told(cluster.claims.put_class, cluster.claims.remove_class, _CLAIM)
        of_cards = quotas or Quotas(cluster)
        self.quotas = told(of_cards.put, of_cards.remove, _NAMESPACE)
        of_owners = budgets or Budgets()
        self.budgets = told(of_owners.put, lambda item: of_owners.remove(item.namespace, item.name), frozenset())
