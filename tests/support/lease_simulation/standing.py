"""How a simulated process stands, and how much work it may have in flight, as the library counts it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.leases.line import LineState
from support.lease_simulation.gpu import Queue

_AVERAGED: Final = 16
_DEPTH: Final = 32
"""Of a card's own queue: more does not fit whatever the line says."""


class Line:
    """What the page says to one container of one card."""

    __slots__ = ("deadline", "epoch", "state")

    def __init__(self) -> None:
        self.state, self.epoch, self.deadline = LineState.CLOSED, 0, 0

    def is_open(self, now: int) -> bool:
        return self.state >= LineState.SOLE or (self.state is LineState.LEASE and now < self.deadline)


class Window:
    __slots__ = ("_estimate", "_launched_under", "_most_ns")

    def __init__(self, most_ns: int) -> None:
        self._most_ns = self._estimate = most_ns
        self._launched_under = -1

    def launched(self, line: Line, work_ns: int) -> None:
        """One more; what the next will take is estimated by what those before took."""
        self._launched_under = line.epoch
        self._estimate = ((_AVERAGED - 1) * self._estimate + work_ns) // _AVERAGED

    def fits(self, line: Line, queued: int, working: int, now: int) -> bool:
        """One more, where so many processes of the container have work in flight; never less than one in a lease."""
        if line.state is LineState.FREE:
            return queued < _DEPTH
        if not queued and self._launched_under != line.epoch:
            return True
        if line.state is LineState.SOLE and queued < 2:
            return True
        room, estimate = self._most_ns // max(1, working), (queued + 1) * self._estimate
        if line.state is not LineState.LEASE:
            return estimate <= room
        left = line.deadline - now
        return estimate <= left and (not queued or estimate <= room)


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
