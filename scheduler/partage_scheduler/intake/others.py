"""NodeIntake, their heartbeats, and what predicates alone know: whatever is said of them goes to whom it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from partage_base.kube.unread import Unread
from partage_scheduler.cluster import Cause, Cluster
from partage_scheduler.objects import ApiLease, ApiNode
from partage_scheduler.queue import Queue

Causes = frozenset[Cause]
Clock = Callable[[], float]


class NodeIntake:
    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock) -> None:
        self._cluster, self._queue, self._clock = cluster, queue, clock

    def listed(self, items: Iterable[ApiNode], _unread: Sequence[Unread] = (), /) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.relisted_nodes(items), now)

    def changed(self, item: ApiNode) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.node(item), now)

    def gone(self, item: ApiNode) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.node_gone(item.name, uid=item.metadata.uid), now)

    def unread(self, which: Unread) -> None:
        """Nothing is known of it any more: as if it did not exist."""
        now = self._clock()
        self._queue.happened(self._cluster.node_gone(which.key[1]), now)


class HeartbeatIntake:
    """The Leases by which advertisers say that what their nodes say is true."""

    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock, wall_clock: Clock) -> None:
        """`wall_clock` is compared with `clock` once: Leases have times of day, and those jump."""
        self._cluster, self._queue, self._clock = cluster, queue, clock
        self._ahead = wall_clock() - clock()
        self._known: set[str] = set()

    def listed(self, items: Iterable[ApiLease], _unread: Sequence[Unread] = (), /) -> None:
        leases = {lease.name: lease for lease in items}
        for name in self._known - leases.keys():
            self._beat(name, None)
        for lease in leases.values():
            self.changed(lease)

    def changed(self, item: ApiLease) -> None:
        self._known.add(item.name)
        self._beat(item.name, _moment(item.spec.renew_time))

    def gone(self, item: ApiLease) -> None:
        self._known.discard(item.name)
        self._beat(item.name, None)

    def unread(self, which: Unread) -> None:
        self._known.discard(which.key[1])
        self._beat(which.key[1], None)

    def _beat(self, name: str, at: float | None) -> None:
        now = self._clock()
        self._queue.happened(self._cluster.heartbeat(name, None if at is None else at - self._ahead, now), now)


class _Item(Protocol):
    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=_Item)


class ObjectIntake(Generic[K]):
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

    def listed(self, items: Iterable[K], _unread: Sequence[Unread] = (), /) -> None:
        """What can't be read counts as gone."""
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

    def unread(self, which: Unread) -> None:
        """It counts as gone: pods that need it wait."""
        known = self._known.pop(which.key, None)
        if known is not None:
            self._remove(known)
            self._happened()

    def _happened(self) -> None:
        self._queue.happened(self._causes, self._clock())


def _key(item: _Item) -> tuple[str, str]:
    return str(getattr(item, "namespace", "")), item.name


def _moment(text: str | None) -> float | None:
    """None where the Lease says no time."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
