"""A simulated broker: the arbiter, lines that processes read, and delayed packets and timers. Pure."""

from __future__ import annotations

from collections.abc import Callable

from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.domains import Place
from partage_isolation.timeslices.durations import SECOND
from partage_isolation.timeslices.line import Notify, Write
from partage_isolation.timeslices.policies import by_name
from partage_plugins.api.names import Namespace
from partage_plugins.api.pods import Gang
from support.lease_simulation.cases import Case
from support.lease_simulation.events import Chance, Events
from support.lease_simulation.process import Process
from support.lease_simulation.standing import Line

_LOOKS_NS = SECOND // 10


class SimulatedBroker:
    def __init__(self, case: Case, events: Events, chance: Chance, *, arbiter: Callable[..., Arbiter]) -> None:
        self._case, self._events, self._chance = case, events, chance
        policy = by_name(case.policy, case.timing, case.gemini)
        self.arbiter = arbiter(policy=lambda _: policy, timing=case.timing)
        self.grants = self.handled = 0
        self.lines: dict[Place, Line] = {}
        self.processes: dict[Place, list[Process]] = {}
        self._places: dict[Process, Place] = {}
        self._ticks = 0
        self._tick_at: int | None = None
        events.at(events.now + _LOOKS_NS, self._look_for_stopped)

    def put(self, place: Place, share: int, limit: int, gang: str = "") -> None:
        """Give a container this share and limit of a card."""
        known = Gang(Namespace("default"), gang, 2) if gang and self._case.knows_gangs else None
        self.lines[place], self.processes[place] = Line(), []
        self.arbiter.put(*place, share=share, limit=limit, gang=known)
        self._act(self.arbiter.line(*place))

    def knows(self, process: Process, place: Place) -> None:
        self.processes[place].append(process)
        self._places[process] = place

    # ---- Messages of processes ---------------------------------------------------------------------------------------

    def joined(self, process: Process) -> None:
        """Handle a request, which is answered at once."""
        key, card = self._places[process]
        self._tell(lambda: self.arbiter.joined(key, card, process, self._events.now))

    def left(self, process: Process) -> None:
        key, card = self._places[process]
        self._tell(lambda: self.arbiter.left(key, card, process, self._events.now))

    def wanted(self, process: Process, epoch: int) -> None:
        key, card = self._places[process]
        self._send(lambda: self.arbiter.wanted(key, card, process, epoch, self._events.now))

    def drained(self, process: Process, epoch: int, at: int, *, blocked: bool) -> None:
        key, card = self._places[process]
        self._send(lambda: self.arbiter.drained(key, card, process, epoch, at, blocked, self._events.now))

    def idle(self, process: Process, epoch: int) -> None:
        key, card = self._places[process]
        self._send(lambda: self.arbiter.idle(key, card, process, epoch, self._events.now))

    def _send(self, call: Callable[[], None]) -> None:
        self._events.at(self._events.now + self._case.sends_ns, lambda: self._tell(call))

    # ---- Actions and timers ------------------------------------------------------------------------------------------

    def _tell(self, call: Callable[[], None]) -> None:
        self.handled += 1
        call()
        for act in self.arbiter.take():
            self._act(act)
        self._plan_tick()

    def _act(self, act: Write | Notify) -> None:
        if isinstance(act, Write):
            line = self.lines[act.key, act.card]
            line.state, line.epoch, line.deadline = act.state, act.epoch, act.deadline_ns
            self.grants += bool(act.state)
        else:
            for process in self.processes[act.key, act.card]:
                process.line_changed()

    def _plan_tick(self) -> None:
        due = self.arbiter.due
        if due is None or due == self._tick_at:
            return
        self._tick_at = due
        self._ticks += 1
        number = self._ticks
        late = self._chance.below(self._case.grain_ns) if self._case.grain_ns else 0
        self._events.at(due + late, lambda: self._tick(number))

    def _tick(self, number: int) -> None:
        if number == self._ticks:
            self._tick_at = None
            self._tell(lambda: self.arbiter.tick(self._events.now))

    def _look_for_stopped(self) -> None:
        if self._case.tells_stopped:
            for silent in self.arbiter.silent():
                process = silent.member
                if isinstance(process, Process) and process.is_stopped:
                    self.arbiter.stopped(silent.key, silent.card, process, self._events.now)
        self._events.at(self._events.now + _LOOKS_NS, self._look_for_stopped)
