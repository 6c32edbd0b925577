"""What the broker has open: containers, the sessions of their processes, and each connection's owner.

A process belongs to a container by its control group, once the runtime's id of the container is known. When the first
process of a container comes, the runtime may not have been asked yet. The process is taken then, and checked as soon as
the id is known.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from partage_base.peers import cgroup_components, is_within
from partage_isolation.audit.metrics import Counters
from partage_isolation.ledger.budget import Budget, Process, State
from partage_isolation.ledger.pieces import ProcessId
from partage_isolation.names import BudgetKey
from partage_isolation.store.page import Page
from partage_isolation.store.specs import Spec
from partage_isolation.wire.connection import (
    CONTAINER_BURST,
    CONTAINER_RATE,
    NAMESPACE_BURST,
    NAMESPACE_RATE,
    Bucket,
    Connection,
    Listener,
)
from partage_plugins.vocabulary.names import ContainerKey


@dataclass(slots=True, eq=False)
class Session:
    """A process that is, or was, connected."""

    process: Process
    calls: Connection | None = None
    signals: Connection | None = None
    pids: tuple[int, ...] = ()
    """From our pid namespace down to its own."""
    namespace: int = 0

    def close(self) -> None:
        """Ends its connections, which then are not its own any more."""
        mine, self.calls, self.signals = (self.calls, self.signals), None, None
        for connection in mine:
            if connection is not None:
                connection.close()


@dataclass(slots=True, eq=False)
class Served:
    spec: Spec
    budget: Budget
    """What it may have, alone or with others."""
    page: Page
    listener: Listener | None = None
    bucket: Bucket = field(default_factory=lambda: Bucket(time.monotonic(), rate=CONTAINER_RATE, burst=CONTAINER_BURST))
    """Of all its connections, and below that of its namespace."""
    sessions: dict[ProcessId, Session] = field(default_factory=dict[ProcessId, Session])
    strangers: set[Connection] = field(default_factory=set[Connection])
    """Connections that have not said HELLO."""

    def close(self) -> None:
        """Ends everything; what lies in files stays."""
        if self.listener is not None:
            self.listener.close()
        for session in list(self.sessions.values()):
            session.close()
        for connection in list(self.strangers):
            connection.close()
        self.page.close()


class Registry:
    """All containers that are served, and what the runtime says of whose processes are whose."""

    def __init__(self) -> None:
        self.served: dict[ContainerKey, Served] = {}
        self._of: dict[BudgetKey, list[Served]] = {}
        self._ids: dict[ContainerKey, frozenset[str]] = {}
        self._buckets = WeakValueDictionary[str, Bucket]()
        """Of namespaces."""
        self._outside: frozenset[Session] = frozenset()
        """In no container of their claim, by the last list."""

    def enter(self, key: ContainerKey, served: Served) -> None:
        self.served[key] = served
        self._of.setdefault(served.budget.key, []).append(served)

    def bucket_of(self, namespace: str) -> Bucket:
        """A new container's, below the one that all of the namespace share."""
        now_s = time.monotonic()
        above = self._buckets.get(namespace) or Bucket(now_s, rate=NAMESPACE_RATE, burst=NAMESPACE_BURST)
        self._buckets[namespace] = above
        return Bucket(now_s, rate=CONTAINER_RATE, burst=CONTAINER_BURST, above=above)

    def leave(self, key: ContainerKey) -> Served | None:
        served = self.served.pop(key, None)
        if served is not None:
            self._of[served.budget.key].remove(served)
            if not self._of[served.budget.key]:
                del self._of[served.budget.key]
        return served

    def of(self, budget: BudgetKey) -> Sequence[Served]:
        """All containers that use it."""
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
        """Ends all connections; containers, limits and rows stay for the next broker."""
        for served in self.served.values():
            served.close()

    def runtime_has(self, ids: Mapping[ContainerKey, AbstractSet[str]]) -> Sequence[tuple[Served, Session]]:
        """What the runtime's list says; gives the sessions of processes that are in another container.

        A claim's container may be newer than the list, so who is outside of its claim is judged by the next list.
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
        """Whether a process may be of the container, or of one of the claim's, as far as is known."""
        if self._is_within(served, pid):
            return True
        return served.spec.is_claim and not served.spec.by_hook and self.container_of(pid) is None

    def _is_within(self, served: Served, pid: int) -> bool:
        """Where hooks tell of containers they do so before these begin: of what was not told nothing is to come."""
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


_HELLO_WITHIN_S: Final = 5.0


class Talk:
    """Of no process, until its peer was found to be a process of the container."""

    __slots__ = ("_hung_up", "_patience", "connection", "served", "session")

    def __init__(
        self,
        served: Served,
        accepted: socket.socket,
        *,
        on_packet: Callable[[Talk, bytes], None],
        hung_up: Callable[[Process], None],
        counters: Counters,
    ) -> None:
        """`hung_up` hears of a process that asks no more, unless we ended that ourselves."""
        self.served, self._hung_up = served, hung_up
        self.session: Session | None = None
        self.connection = Connection(
            accepted,
            on_packet=partial(on_packet, self),
            on_end=self._ended,
            shared=served.bucket,
            counters=counters,
        )
        served.strangers.add(self.connection)
        self._patience = asyncio.get_running_loop().call_later(_HELLO_WITHIN_S, self.connection.close)

    def take(self, session: Session, *, is_signals: bool) -> None:
        """It is of that process from now on; an earlier one of the same kind is over."""
        before = session.signals if is_signals else session.calls
        if is_signals:
            session.signals = self.connection
        else:
            session.calls = self.connection
        self.session = session
        self.served.strangers.discard(self.connection)
        self._patience.cancel()
        if before is not None:
            before.close()

    def _ended(self) -> None:
        self._patience.cancel()
        self.served.strangers.discard(self.connection)
        session = self.session
        if session is None:
            return
        if session.calls is self.connection:
            session.calls = None
            self._hung_up(session.process)
        elif session.signals is self.connection:
            session.signals = None
        if session.process.state is State.GONE:
            self.served.sessions.pop(session.process.id, None)
