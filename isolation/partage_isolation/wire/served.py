"""The containers that the broker serves, and the mapping of processes to them.

A process belongs to a container by its cgroup, once the runtime's id of the container is known. When a container's
first process connects, the runtime may not have been queried yet. The process is then accepted, and checked as soon as
the id is known.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from weakref import WeakValueDictionary

from partage_base.peers import cgroup_components, is_within
from partage_isolation.ledger.budget import Process
from partage_isolation.names import BudgetKey
from partage_isolation.store.row_bounds import RowBounds
from partage_isolation.wire.connection import (
    CONTAINER_BURST,
    CONTAINER_RATE,
    NAMESPACE_BURST,
    NAMESPACE_RATE,
    Bucket,
    Connection,
    Served,
    Session,
)
from partage_plugins.api.names import ContainerKey


class Registry:
    def __init__(self, bounds: RowBounds) -> None:
        self._bounds = bounds
        self.served: dict[ContainerKey, Served] = {}
        self._of: dict[BudgetKey, list[Served]] = {}
        self._ids: dict[ContainerKey, frozenset[str]] = {}
        self._buckets = WeakValueDictionary[str, Bucket]()
        """Buckets of namespaces."""
        self._outside: frozenset[Session] = frozenset()
        """Outside all containers of their claim, by the last list."""

    def enter(self, key: ContainerKey, served: Served) -> None:
        self.served[key] = served
        self._of.setdefault(served.budget.key, []).append(served)
        for owner in (key, served.budget.key):
            self._bounds.belongs(owner, served.spec.pod.namespace)

    def bucket_of(self, namespace: str) -> Bucket:
        """A new container's bucket, below the one that its whole namespace shares."""
        now_s = time.monotonic()
        above = self._buckets.get(namespace) or Bucket(now_s, rate=NAMESPACE_RATE, burst=NAMESPACE_BURST)
        self._buckets[namespace] = above
        return Bucket(now_s, rate=CONTAINER_RATE, burst=CONTAINER_BURST, above=above)

    def leave(self, key: ContainerKey) -> Served | None:
        served = self.served.pop(key, None)
        if served is not None:
            self._bounds.belongs(key, "")
            self._of[served.budget.key].remove(served)
            if not self._of[served.budget.key]:
                self._bounds.belongs(served.budget.key, "")
                del self._of[served.budget.key]
        return served

    def of(self, budget: BudgetKey) -> Sequence[Served]:
        """All containers that use the budget."""
        return self._of.get(budget, ())

    def signals_of(self, process: Process) -> Connection | None:
        served = self.served.get(process.key)
        session = served.sessions.get(process.id) if served else None
        return session.signals if session is not None and session.process is process else None

    def ended(self, process: Process) -> None:
        served = self.served.get(process.key)
        session = served.sessions.pop(process.id, None) if served else None
        if session is not None:
            session.close()

    def close(self) -> None:
        """Close all connections; containers, limits and rows stay for the next broker."""
        for served in self.served.values():
            served.close()

    def runtime_has(self, ids: Mapping[ContainerKey, AbstractSet[str]]) -> Sequence[tuple[Served, Session]]:
        """Apply the runtime's list; return the sessions of processes that are in another container.

        A claim's container may be newer than the list, so a process outside its claim is only rejected by the next
        list.
        """
        before, self._ids = self._ids, {key: frozenset(some) for key, some in ids.items() if some}
        outside, gone = set[Session](), list[tuple[Served, Session]]()
        for key, served in self.served.items():
            is_claim = served.spec.is_claim
            if not is_claim and before.get(key) == self._ids.get(key):
                continue
            for session in served.sessions.values():
                if session.calls and not self._is_within(served, session.process.pid):
                    outside.add(session)
                    if not is_claim or session in self._outside:
                        gone.append((served, session))
        self._outside = frozenset(outside)
        return gone

    def may_be(self, served: Served, pid: int) -> bool:
        """Whether a process may belong to the container, or to one of the claim's, as far as is known."""
        if self._is_within(served, pid):
            return True
        return served.spec.is_claim and not served.spec.by_hook and self.container_of(pid) is None

    def _is_within(self, served: Served, pid: int) -> bool:
        """Whether its cgroup is in the container. Hooks report containers before they start, so none is unreported."""
        if served.spec.by_hook:
            entered = frozenset(each.id for each in served.spec.engine_containers)
            return _is_within_any(cgroup_components(pid), entered)
        ids = self._ids.get(served.spec.key)
        return not ids or _is_within_any(cgroup_components(pid), ids)

    def container_of(self, pid: int) -> ContainerKey | None:
        components = cgroup_components(pid)
        return next((key for key, ids in self._ids.items() if _is_within_any(components, ids)), None)


def _is_within_any(components: frozenset[str], ids: frozenset[str]) -> bool:
    return any(is_within(components, runtime_id) for runtime_id in ids)
