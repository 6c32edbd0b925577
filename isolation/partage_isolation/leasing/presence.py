"""What is remembered of a process on a card, and counted of its container. Pure.

A *member* is a process that has joined. One that did not say in time that its work was done is *silent*: nobody waits
for it, until it says so of a line as it is then.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

Member = Hashable
"""A process, as the caller knows it."""


@dataclass(slots=True)
class Presence:
    """One member."""

    drained: int | None = None
    """The epoch whose work it last said to be done."""
    is_idle: bool = False
    """It said so of this epoch, and may have begun again since."""
    wants: bool = False
    silent_since: int | None = None
    """When its lease had ended, if it never said that its work was done."""
    is_stopped: bool = False
    """It does not run at all: what it launched is done, whatever it says."""


@dataclass(slots=True)
class Counts:
    """Since the container came."""

    leases: int = 0
    revocations: int = 0
    drains: int = 0
    drains_ns: int = 0
    last_drain_ns: int = 0
    overlaps: int = 0

    def drained(self, drain_ns: int) -> None:
        """All its work was done, in time: so long after the lease."""
        self.drains, self.drains_ns, self.last_drain_ns = self.drains + 1, self.drains_ns + drain_ns, drain_ns
