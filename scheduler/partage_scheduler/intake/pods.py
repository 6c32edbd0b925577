"""Everybody's pods: what is said of them goes to who counts them, and to who places them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from partage_base.kube.unread import Unread
from partage_plugins.vocabulary import PodUid
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from partage_scheduler.cluster import Cause, Cluster
from partage_scheduler.objects import ApiPod
from partage_scheduler.objects.base import Meta
from partage_scheduler.objects.specs import PodSpec
from partage_scheduler.queue import Queue
from partage_scheduler.versions import Versions


class PodIntake:
    """Pods of all schedulers: those on nodes count there, ours without a node are to be placed."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        *,
        ours: str,
        clock: Callable[[], float],
        let_go: Callable[[PodUid], None] = lambda _uid: None,
    ) -> None:
        """`ours` is our schedulerName; `let_go` hears of pods that wait no more."""
        self._cluster, self._queue, self._ours = cluster, queue, ours
        self._clock, self._let_go = clock, let_go
        self._seen = Versions()
        self._placed: set[PodUid] = set()
        """Bound by us, and not yet seen on their nodes."""
        self._since: dict[PodUid, float] = {}
        """PodIntake that wait, and since when."""

    def waits_since(self, uid: PodUid) -> float | None:
        """When a pod that is to be placed was first seen."""
        return self._since.get(uid)

    def placed(self, uid: PodUid) -> None:
        """It is bound: what was said of it before does not matter any more."""
        if uid in self._since:
            self._placed.add(uid)
        self._waits_no_more(uid)

    def listed(self, items: Iterable[ApiPod], unread: Sequence[Unread] = (), /) -> None:
        """Pods that can't be read hold what they held."""
        pods, now = {pod.uid: pod for pod in items}, self._clock()
        there = pods.keys() | {PodUid(each.uid) for each in unread}
        causes = self._cluster.none_unread()
        for uid in [PodUid(uid) for uid in self._seen.known() if uid not in there]:
            causes |= self._ended(uid)
        news = [pod for pod in pods.values() if self._seen.is_news(pod.uid, pod.metadata.resource_version)]
        for pod in news:
            causes |= self._told(pod)
        for pod in news:
            self._offer(pod, now)
        self._queue.happened(causes, now)

    def changed(self, item: ApiPod) -> None:
        if not self._seen.is_news(item.uid, item.metadata.resource_version):
            return
        now = self._clock()
        if item.is_refused and item.spec.scheduler_name == self._ours:
            self._cluster.refused(item, now)
        causes = self._told(item)
        self._offer(item, now)
        self._queue.happened(causes, now)

    def gone(self, item: ApiPod) -> None:
        self._gone(item.uid)

    def unread(self, which: Unread) -> None:
        """A pod whose requests and allocation are not known."""
        uid = PodUid(which.uid)
        if which.is_gone:
            self._gone(uid)
        else:
            self._forget(uid)
            self._cluster.pod_unread(_legible(which))
            self._seen.exists(uid)

    def _gone(self, uid: PodUid) -> None:
        self._queue.happened(self._ended(uid), self._clock())

    def _told(self, pod: ApiPod) -> frozenset[Cause]:
        return self._ended(pod.uid) if pod.is_terminal else self._cluster.pod(pod)

    def _ended(self, uid: PodUid) -> frozenset[Cause]:
        """It is never of interest again, whatever comes late."""
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


def _legible(which: Unread) -> ApiPod:
    """What could be read of a pod, as far as it says what the pod holds and where."""
    (namespace, name), notes = which.key, which.annotations
    noted = {key: notes[key] for key in (ALLOCATION, SIGNATURE) if key in notes}
    meta = Meta(name=name, namespace=namespace, uid=which.uid, resource_version=which.version, annotations=noted)
    return ApiPod(metadata=meta, spec=PodSpec(node_name=which.node))
