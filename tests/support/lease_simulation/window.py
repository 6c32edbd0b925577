"""How much work a process may have in flight, as the library counts it. Pure."""

from __future__ import annotations

from typing import Final

from partage_isolation.leases.line import LineState

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
