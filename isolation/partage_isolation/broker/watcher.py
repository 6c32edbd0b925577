"""Who looks after what packets set off, as conversations need him."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from partage_isolation.broker.containers import Process
from partage_isolation.broker.processes import Peer
from partage_isolation.broker.served import Session
from partage_isolation.broker.verdicts import Decide, Park
from partage_isolation.broker.wire import Packet


class Watcher(Protocol):
    """Who looks after what a packet sets off."""

    def watch(self, process: Process, peer: Peer) -> None:
        """A process is there; `peer.pidfd` is the watcher's now."""
        ...

    def park(self, session: Session, packet: Packet, verdict: Park, decide: Decide) -> None:
        """A question that waits; it is answered by `sessions.decided`."""
        ...

    def doubts(self, process: Process, card: int) -> None:
        """A sample of that card is worth taking now: something is said to be free, or claimed."""
        ...

    def context_made(self, process: Process, card: int) -> None:
        """A sample will show what it takes."""
        ...

    def once_measured(self, process: Process, card: int, then: Callable[[], None]) -> bool:
        """Calls that when such a sample was taken; False where none is under way."""
        ...
