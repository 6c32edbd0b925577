"""The state of a simulated process, and its limit of work in flight, as the library computes them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.timeslices.line import LineState
from support.lease_simulation.gpu import Queue

_AVERAGED: Final = 16
_DEPTH: Final = 32
"""Depth of the card's own queue, an upper bound regardless of the line."""


@dataclass(slots=True)
class Line:
    """The page's line for one container on one card."""

    state: LineState = LineState.CLOSED
    epoch: int = 0
    deadline: int = 0

    def is_open(self, now: int) -> bool:
        return self.state >= LineState.SOLE or (self.state is LineState.TIMESLICE and now < self.deadline)


class Window:
    __slots__ = ("_estimate", "_launched_under", "_most_ns")

    def __init__(self, most_ns: int) -> None:
        self._most_ns = self._estimate = most_ns
        self._launched_under = -1

    def launched(self, line: Line, work_ns: int) -> None:
        """Record a launch; the estimate for the next one is a moving average of the earlier ones."""
        self._launched_under = line.epoch
        self._estimate = ((_AVERAGED - 1) * self._estimate + work_ns) // _AVERAGED

    def fits(self, line: Line, queued: int, working: int, now: int) -> bool:
        """Whether one more launch fits if `working` processes have work in flight; a time slice allows at least one."""
        if line.state is LineState.FREE:
            return queued < _DEPTH
        if not queued and self._launched_under != line.epoch:
            return True
        if line.state is LineState.SOLE and queued < 2:
            return True
        room, estimate = self._most_ns // max(1, working), (queued + 1) * self._estimate
        if line.state is not LineState.TIMESLICE:
            return estimate <= room
        left = line.deadline - now
        return estimate <= left and (not queued or estimate <= room)


@dataclass(slots=True, eq=False)
class Standing:
    line: Line
    queue: Queue
    last: int
    """Time of the last launch, completion or change of the line."""
    own_closed: int = -1
    """The epoch that the process closed for itself, because nothing more fitted into it."""
    is_blocked: bool = False
    """Its thread waits at the gate."""
    is_stopped: bool = False
    is_dead: bool = False
    resumes: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Calls to make when it continues."""

    def may_launch(self, now: int) -> bool:
        """Whether the line is open for this process."""
        return self.line.is_open(now) and self.own_closed != self.line.epoch

    def when_running(self, call: Callable[[], None]) -> None:
        """Call at once, or when a stopped process continues; never for a dead one."""
        if self.is_stopped:
            self.resumes.append(call)
        elif not self.is_dead:
            call()
