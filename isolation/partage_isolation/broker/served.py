"""What the broker has open for one container, and for each of its processes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from partage_isolation.broker.buckets import CONTAINER_BURST, CONTAINER_RATE, Bucket
from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.page import Page
from partage_isolation.broker.pieces import ProcessId
from partage_isolation.broker.sockets import Connection, Listener
from partage_isolation.broker.specs import Spec


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
    """One container."""

    spec: Spec
    container: Container
    page: Page
    listener: Listener | None = None
    bucket: Bucket = field(default_factory=lambda: Bucket(time.monotonic(), rate=CONTAINER_RATE, burst=CONTAINER_BURST))
    """Of all its connections."""
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
