"""A simulated process that behaves as with the library: a thread runs the program. Pure.

The thread waits at the gate while the line is closed, sends WANT, and waits while the window is full. `helper` reports
work that has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from support.lease_simulation.cases import Case
from support.lease_simulation.events import Events
from support.lease_simulation.gpu import Gpu, Meeting, Queue
from support.lease_simulation.helper import Helper
from support.lease_simulation.standing import Line, Standing, Window
from support.lease_simulation.workloads import Launch, Meet, Program, Step, Took, Until, Wait


class Broker(Protocol):
    def wanted(self, process: Process, epoch: int) -> None:
        """Called when a thread finds the gate closed."""
        ...

    def drained(self, process: Process, epoch: int, at: int, *, blocked: bool) -> None: ...

    def idle(self, process: Process, epoch: int) -> None: ...


class Process:
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
        self._case, self._events, self._broker, self._gpu = case, events, broker, gpu
        self._program, self._siblings, self._meet = program, siblings, meet
        self._standing = Standing(line, Queue(bins, self._completed), events.now)
        self._helper = Helper(case, events, self._standing, says=self, goes_on=self._may_go_on)
        self.line_changed = self._helper.line_changed
        self._window = Window(case.window_ns)
        self._met = 0
        self._step: Step | None = None
        self._wanted = -1
        self.took: list[tuple[int, int]] = []

    # ---- The thread --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._step = next(self._program)
        self._run()

    def _next(self) -> None:
        self._step = self._program.send(self._events.now)
        self._run()

    def _run(self) -> None:
        """Continue with the current step, unless it has to wait for an event that calls this again."""
        self._standing.when_running(self._take_step)

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
                if not self._standing.queue.work:
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
        self._events.at(when, lambda: self._standing.when_running(self._next))

    def _may_go_on(self) -> None:
        if isinstance(self._step, Launch | Meet):
            self._run()

    def _completed(self, now: int) -> None:
        self._standing.last = now
        if isinstance(self._step, Launch | Meet | Wait):
            self._run()
        self._helper.work_ended()

    # ---- The gate ----------------------------------------------------------------------------------------------------

    def _may_launch(self) -> bool:
        standing = self._standing
        if not standing.may_launch(self._events.now):
            self._stand_at_gate()
            return False
        standing.is_blocked = False
        if self._fits():
            return True
        if not standing.queue.work:  # nothing more fits before the deadline
            standing.own_closed = standing.line.epoch
            self._stand_at_gate()
            self._helper.drain()
        return False

    def _fits(self) -> bool:
        standing, working = self._standing, sum(each.is_working for each in self._siblings)
        return self._window.fits(standing.line, len(standing.queue.work), working, self._events.now)

    def _launch(self, work_ns: int, meeting: Meeting | None = None) -> None:
        standing = self._standing
        self._window.launched(standing.line, work_ns)
        standing.last = self._events.now
        self._gpu.launch(standing.queue, work_ns, meeting)
        self._later(self._events.now + self._case.launches_ns)

    def _stand_at_gate(self) -> None:
        self._standing.is_blocked = True
        epoch = self._standing.line.epoch
        if self._wanted != epoch:
            self._wanted = epoch
            self._broker.wanted(self, epoch)

    # ---- Messages of the helper --------------------------------------------------------------------------------------

    def drained(self, epoch: int, at: int, *, blocked: bool) -> None:
        self._broker.drained(self, epoch, at, blocked=blocked)

    def idle(self, epoch: int) -> None:
        self._broker.idle(self, epoch)

    # ---- State and signals -------------------------------------------------------------------------------------------

    @property
    def is_working(self) -> bool:
        """Whether it has work on the card."""
        return bool(self._standing.queue.work)

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped; only its work on the card continues."""
        return self._standing.is_stopped

    def stop(self) -> None:
        self._standing.is_stopped = True

    def go_on(self) -> None:
        standing = self._standing
        standing.is_stopped = False
        resumes, standing.resumes = standing.resumes, []
        for resume in resumes:
            resume()
        self._helper.look()

    def die(self) -> None:
        """End the process, and drop everything that it launched."""
        self._standing.is_dead = True
        self._gpu.forget(self._standing.queue)
