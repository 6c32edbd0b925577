"""A simulated process, as the library makes it behave. Pure.

A thread runs the program: it stands at the gate while the line is closed, and waits while the window is full. The
helper says WANT, DRAINED and IDLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from partage_isolation.leasing.simulating.cases import Case
from partage_isolation.leasing.simulating.events import Events
from partage_isolation.leasing.simulating.gpu import Gpu, Meeting, Queue
from partage_isolation.leasing.simulating.window import Line, Window
from partage_isolation.leasing.simulating.workloads import Launch, Meet, Program, Step, Took, Until, Wait
from partage_isolation.leasing.words import LineState


class Broker(Protocol):
    """Who is told."""

    def wanted(self, process: Process, epoch: int) -> None:
        """A thread found the gate closed."""
        ...

    def drained(self, process: Process, epoch: int, at: int, blocked: bool) -> None:  # noqa: FBT001
        """Its work is done."""
        ...

    def idle(self, process: Process, epoch: int) -> None:
        """For a while already."""
        ...


class Process:
    """One, on one card."""

    def __init__(  # noqa: PLR0913 - all that there is of it
        self,
        case: Case,
        events: Events,
        broker: Broker,
        *,
        gpu: Gpu,
        line: Line,
        bins: dict[int, float],
        program: Program,
        siblings: list[Process],
        meet: Callable[[int, int], Meeting],
    ) -> None:
        self._case, self._events, self._broker, self._gpu, self.line = case, events, broker, gpu, line
        self.queue = Queue(bins, self._completed)
        self._program, self._siblings, self._meet = program, siblings, meet
        self._met = 0
        self._step: Step | None = None
        self._wanted = self._drained = self._idled = self._own_closed = -1
        self.is_blocked = False
        self._window = Window(case.window_ns)
        self._last = events.now
        self.is_stopped = self.is_dead = False
        self._resumes: list[Callable[[], None]] = []
        self.took: list[tuple[int, int]] = []

    # ---- The thread --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Its program starts."""
        self._step = next(self._program)
        self._run()

    def _next(self) -> None:
        self._step = self._program.send(self._events.now)
        self._run()

    def _run(self) -> None:
        """Goes on with its step, unless it has to wait for something that calls here again."""
        if self.is_stopped:
            self._resumes.append(self._run)
        elif not self.is_dead:
            self._take_step()

    def _take_step(self) -> None:
        step, now = self._step, self._events.now
        match step:
            case Launch(work_ns):
                if self._may_launch():
                    self._launch(work_ns)
            case Meet(work_ns):
                if self._may_launch():
                    self._met += 1
                    self._launch(work_ns, self._meet(self._met, work_ns))
            case Wait(then_ns):
                if not self.queue.work:
                    self._later(now + then_ns)
            case Until(when):
                self._later(when)
            case Took(took_ns):
                self.took.append((now, took_ns))
                self._next()
            case None:
                pass

    def _later(self, when: int) -> None:
        self._step = None
        self._events.at(when, self._woken)

    def _woken(self) -> None:
        if self.is_stopped:
            self._resumes.append(self._woken)
        elif not self.is_dead:
            self._next()

    def _may_launch(self) -> bool:
        line, now = self.line, self._events.now
        if not line.is_open(now) or self._own_closed == line.epoch:
            self._stand_at_gate()
            return False
        self.is_blocked = False
        if self._fits():
            return True
        if not self.queue.work:  # nothing more fits before the deadline
            self._own_closed = line.epoch
            self._stand_at_gate()
            self._drain()
        return False

    def _fits(self) -> bool:
        working = sum(bool(each.queue.work) for each in self._siblings)
        return self._window.fits(self.line, len(self.queue.work), working, self._events.now)

    def _launch(self, work_ns: int, meeting: Meeting | None = None) -> None:
        self._window.launched(self.line, work_ns)
        self._last = self._events.now
        self._gpu.launch(self.queue, work_ns, meeting)
        self._later(self._events.now + self._case.launches_ns)

    def _stand_at_gate(self) -> None:
        self.is_blocked = True
        if self._wanted != self.line.epoch:
            self._wanted = self.line.epoch
            self._broker.wanted(self, self.line.epoch)

    def _completed(self, now: int) -> None:
        self._last = now
        if isinstance(self._step, Launch | Meet | Wait):
            self._run()
        self._drain()
        self._plan_idle()

    # ---- The helper --------------------------------------------------------------------------------------------------

    def line_changed(self) -> None:
        """The broker wrote; threads and the helper wake up in a moment."""
        self._events.at(self._events.now + self._case.wakes_ns, self._look)

    def _look(self) -> None:
        if self.is_stopped:
            self._resumes.append(self._look)
            return
        if self.is_dead:
            return
        line, epoch = self.line, self.line.epoch
        self._last = max(self._last, self._events.now)
        if isinstance(self._step, Launch | Meet):
            self._run()
        self._drain()
        self._plan_idle()
        if line.state is LineState.LEASE:
            self._events.at(line.deadline, lambda: self._deadline(epoch))

    def _deadline(self, epoch: int) -> None:
        if epoch == self.line.epoch:
            if self.is_stopped:
                self._resumes.append(self._drain)
            else:
                self._drain()

    def _drain(self) -> None:
        """Says that its work is done, once for each epoch that is over."""
        line, now = self.line, self._events.now
        if self.is_stopped or self.is_dead or self.queue.work or self._drained == line.epoch:
            return
        if not line.is_open(now) or self._own_closed == line.epoch:
            self._drained = line.epoch
            self._broker.drained(self, line.epoch, self._last, self.is_blocked)

    def _plan_idle(self) -> None:
        line = self.line
        if not self.queue.work and line.state in (LineState.LEASE, LineState.SOLE) and self._idled != line.epoch:
            epoch, since = line.epoch, self._last
            self._events.at(since + self._case.idle_ns, lambda: self._say_idle(epoch, since))

    def _say_idle(self, epoch: int, since: int) -> None:
        line, now = self.line, self._events.now
        is_same = epoch == line.epoch and since == self._last and epoch not in {self._idled, self._own_closed}
        if is_same and line.is_open(now) and not (self.is_blocked or self.is_stopped or self.is_dead):
            self._idled = epoch
            self._broker.idle(self, epoch)

    # ---- Trouble -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Nothing of it runs, but what is on the card."""
        self.is_stopped = True

    def go_on(self) -> None:
        """It runs again."""
        self.is_stopped = False
        resumes, self._resumes = self._resumes, []
        for resume in resumes:
            resume()
        self._look()

    def die(self) -> None:
        """With all that it launched."""
        self.is_dead = True
        self._gpu.forget(self.queue)
