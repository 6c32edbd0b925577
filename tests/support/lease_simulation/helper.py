"""The helper thread of a simulated process: sends DRAINED and IDLE, as the library's does. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from partage_isolation.timeslices.line import LineState
from support.lease_simulation.cases import Case
from support.lease_simulation.events import Events
from support.lease_simulation.standing import Standing


class Says(Protocol):
    """Sends messages to the broker."""

    def drained(self, epoch: int, at: int, *, blocked: bool) -> None: ...

    def idle(self, epoch: int) -> None: ...


class Helper:
    def __init__(
        self, case: Case, events: Events, shape_scores: Standing, *, says: Says, goes_on: Callable[[], None]
    ) -> None:
        """`goes_on` lets the program's thread check again whether it may launch."""
        self._case, self._events, self._standing = case, events, shape_scores
        self._says, self._goes_on = says, goes_on
        self._drained = self._idled = -1

    def line_changed(self) -> None:
        """The broker wrote the line; threads and the helper wake up after a delay."""
        self._events.at(self._events.now + self._case.wakes_ns, self.look)

    def look(self) -> None:
        self._standing.when_running(self._look)

    def _look(self) -> None:
        shape_scores, epoch = self._standing, self._standing.line.epoch
        line = shape_scores.line
        shape_scores.last = max(shape_scores.last, self._events.now)
        self._goes_on()
        self.work_ended()
        if line.state is LineState.TIMESLICE:
            self._events.at(line.deadline, lambda: self._deadline(epoch))

    def work_ended(self) -> None:
        """Work has ended, or may have: send what is due, and schedule the rest."""
        self.drain()
        self._plan_idle()

    def _deadline(self, epoch: int) -> None:
        if epoch == self._standing.line.epoch:
            self._standing.when_running(self.drain)

    def drain(self) -> None:
        """Report that its work is done, once for each epoch that is over."""
        shape_scores, epoch = self._standing, self._standing.line.epoch
        if shape_scores.is_stopped or shape_scores.is_dead or shape_scores.queue.work or self._drained == epoch:
            return
        if not shape_scores.may_launch(self._events.now):
            self._drained = epoch
            self._says.drained(epoch, shape_scores.last, blocked=shape_scores.is_blocked)

    def _plan_idle(self) -> None:
        shape_scores, line = self._standing, self._standing.line
        if (
            not shape_scores.queue.work
            and line.state in (LineState.TIMESLICE, LineState.SOLE)
            and self._idled != line.epoch
        ):
            epoch, since = line.epoch, shape_scores.last
            self._events.at(since + self._case.idle_ns, lambda: self._say_idle(epoch, since))

    def _say_idle(self, epoch: int, since: int) -> None:
        shape_scores = self._standing
        is_same = epoch == shape_scores.line.epoch and since == shape_scores.last and epoch != self._idled
        keeps_still = shape_scores.is_blocked or shape_scores.is_stopped or shape_scores.is_dead
        if is_same and shape_scores.may_launch(self._events.now) and not keeps_still:
            self._idled = epoch
            self._says.idle(epoch)
