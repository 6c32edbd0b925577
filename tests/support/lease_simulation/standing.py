"""How a simulated process stands: what its thread and its helper know of each other. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from support.lease_simulation.gpu import Queue
from support.lease_simulation.window import Line


@dataclass(slots=True, eq=False)
class Standing:
    line: Line
    queue: Queue
    last: int
    """When something of it was last launched or completed, or its line changed."""
    own_closed: int = -1
    """The epoch that it ended itself, since nothing more fitted into it."""
    is_blocked: bool = False
    """Its thread stands at the gate."""
    is_stopped: bool = False
    is_dead: bool = False
    resumes: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What it does once it is no longer stopped."""

    def may_launch(self, now: int) -> bool:
        """The line is open to it."""
        return self.line.is_open(now) and self.own_closed != self.line.epoch

    def when_running(self, call: Callable[[], None]) -> None:
        """At once; if it is stopped, when it goes on; never, if it is dead."""
        if self.is_stopped:
            self.resumes.append(call)
        elif not self.is_dead:
            call()
