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
        self, case: Case, events: Events, standing: Standing, *, says: Says, goes_on: Callable[[], None]
    ) -> None:
        """`goes_on` lets the program's thread check again whether it may launch."""
        self._case, self._events, self._standing = case, events, standing
        self._says, self._goes_on = says, goes_on
        self._drained = self._idled = -1

    def line_changed(self) -> None:
        """The broker wrote the line; threads and the helper wake up after a delay."""
        self._events.at(self._events.now + self._case.wakes_ns, self.look)

    def look(self) -> None:
        self._standing.when_running(self._look)

    def _look(self) -> None:
        standing, epoch = self._standing, self._standing.line.epoch
        line = standing.line
        standing.last = max(standing.last, self._events.now)
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
        standing, epoch = self._standing, self._standing.line.epoch
        if standing.is_stopped or standing.is_dead or standing.queue.work or self._drained == epoch:
            return
        if not standing.may_launch(self._events.now):
            self._drained = epoch
            self._says.drained(epoch, standing.last, blocked=standing.is_blocked)

    def _plan_idle(self) -> None:
        standing, line = self._standing, self._standing.line
        if (
            not standing.queue.work
            and line.state in (LineState.TIMESLICE, LineState.SOLE)
            and self._idled != line.epoch
        ):
            epoch, since = line.epoch, standing.last
            self._events.at(since + self._case.idle_ns, lambda: self._say_idle(epoch, since))

    def _say_idle(self, epoch: int, since: int) -> None:
        standing = self._standing
        is_same = epoch == standing.line.epoch and since == standing.last and epoch != self._idled
        keeps_still = standing.is_blocked or standing.is_stopped or standing.is_dead
        if is_same and standing.may_launch(self._events.now) and not keeps_still:
            self._idled = epoch
            self._says.idle(epoch)
