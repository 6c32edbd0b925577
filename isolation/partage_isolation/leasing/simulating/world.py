"""A simulated node: an arbiter, cards and the processes of containers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partage_isolation.leasing.acts import Hint, Write
from partage_isolation.leasing.arbiter import Arbiter
from partage_isolation.leasing.policies import by_name
from partage_isolation.leasing.simulating.cases import Case, Container, Trouble, What
from partage_isolation.leasing.simulating.chance import Chance
from partage_isolation.leasing.simulating.events import Events
from partage_isolation.leasing.simulating.figures import Figures, seconds_of
from partage_isolation.leasing.simulating.gpu import BIN_NS, Gpu, Meeting
from partage_isolation.leasing.simulating.process import Process
from partage_isolation.leasing.simulating.window import Line
from partage_isolation.leasing.timing import SECOND
from partage_plugins.vocabulary.names import CardId, ContainerKey

_BEGIN = 1_000 * SECOND
_LOOKS_NS = SECOND // 10
_DEATH_NS = 200_000

Place = tuple[ContainerKey, CardId]


def run(case: Case) -> Figures:
    """From beginning to end."""
    return World(case).run()


def _card(number: int) -> CardId:
    return CardId(f"card-{number}")


def _key(number: int) -> ContainerKey:
    return ContainerKey(f"container-{number}")


class World:
    """See the module."""

    def __init__(self, case: Case, *, arbiter: Callable[..., Arbiter] = Arbiter) -> None:
        self._case, self._events = case, Events(_BEGIN)
        policy = by_name(case.policy, case.timing)
        self.arbiter = arbiter(policy=lambda _: policy, timing=case.timing)
        self._chance = Chance(case.seed)
        self._ticks = 0
        self._tick_at: int | None = None
        self.grants = self.handled = 0
        self._bins: list[dict[int, float]] = [{} for _ in case.containers]
        self._gpus: dict[int, Gpu] = {}
        self._lines: dict[Place, Line] = {}
        self._processes: dict[Place, list[Process]] = {}
        self._places: dict[Process, Place] = {}
        self._of: list[list[Process]] = []
        self._meetings: dict[tuple[int, int], Meeting] = {}
        for number, container in enumerate(case.containers):
            self._add(number, container)
        self._events.at(_BEGIN + _LOOKS_NS, self._look_for_stopped)

    def run(self) -> Figures:
        """All of it."""
        case = self._case
        self._events.run_until(_BEGIN + case.lasts_ns)
        first, last = (_BEGIN + case.skip_ns) // BIN_NS, (_BEGIN + case.lasts_ns) // BIN_NS
        told = self.arbiter.shares(self._events.now)
        return Figures(
            used=tuple(seconds_of(bins, first, last, SECOND // BIN_NS) for bins in self._bins),
            took_ns=tuple(self._took(processes) for processes in self._of),
            overlapped=sum(gpu.overlapped_ns for gpu in self._gpus.values()) / case.lasts_ns,
            grants=self.grants,
            told={number: told[_key(number), _card(each.cards[0])] for number, each in enumerate(case.containers)},
            events=self.handled,
        )

    def _took(self, processes: list[Process]) -> tuple[int, ...]:
        since = _BEGIN + self._case.skip_ns
        return tuple(took for process in processes for at, took in process.took if at >= since)

    # ---- Who is there ------------------------------------------------------------------------------------------------

    def _add(self, number: int, container: Container) -> None:
        key, begin = _key(number), _BEGIN + container.begins_ns
        for card in container.cards:
            self._gpus.setdefault(card, Gpu(self._events))
            self._lines[key, _card(card)] = Line()
            self._processes[key, _card(card)] = []
            self.arbiter.put(key, _card(card), share=container.share, limit=container.limit)
        processes = [
            self._make(number, container, card) for _ in range(container.processes) for card in container.cards
        ]
        self._of.append(processes)
        for process in processes:
            self._events.at(begin, partial(self._begin, process))
        for trouble in container.troubles:
            self._events.at(_BEGIN + trouble.at_ns, partial(self._happens, processes, trouble))

    def _make(self, number: int, container: Container, card: int) -> Process:
        place = _key(number), _card(card)
        process = Process(
            self._case,
            self._events,
            self,
            gpu=self._gpus[card],
            line=self._lines[place],
            bins=self._bins[number],
            program=container.workload(self._chance.fork(), _BEGIN + container.begins_ns),
            siblings=self._processes[place],
            meet=partial(self._meeting, number, len(container.cards) * container.processes),
        )
        self._processes[place].append(process)
        self._places[process] = place
        return process

    def _meeting(self, container: int, peers: int, number: int, work_ns: int) -> Meeting:
        """The container's collective of that number."""
        return self._meetings.setdefault((container, number), Meeting(peers, work_ns))

    def _begin(self, process: Process) -> None:
        key, card = self._places[process]
        self._tell(lambda: self.arbiter.joined(key, card, process, self._events.now))
        process.begin()

    def _happens(self, processes: list[Process], trouble: Trouble) -> None:
        process = processes[trouble.process]
        if trouble.what is What.STOPS:
            process.stop()
        elif trouble.what is What.GOES_ON:
            process.go_on()
        else:
            key, card = self._places[process]
            process.die()
            left = self._events.now + _DEATH_NS
            self._events.at(left, lambda: self._tell(lambda: self.arbiter.left(key, card, process, self._events.now)))

    # ---- What the broker does ----------------------------------------------------------------------------------------

    def wanted(self, process: Process, epoch: int) -> None:
        """A packet."""
        key, card = self._places[process]
        self._send(lambda: self.arbiter.wanted(key, card, process, epoch, self._events.now))

    def drained(self, process: Process, epoch: int, at: int, blocked: bool) -> None:  # noqa: FBT001
        """A packet."""
        key, card = self._places[process]
        self._send(lambda: self.arbiter.drained(key, card, process, epoch, at, blocked, self._events.now))

    def idle(self, process: Process, epoch: int) -> None:
        """A packet."""
        key, card = self._places[process]
        self._send(lambda: self.arbiter.idle(key, card, process, epoch, self._events.now))

    def _send(self, call: Callable[[], None]) -> None:
        self._events.at(self._events.now + self._case.sends_ns, lambda: self._tell(call))

    def _tell(self, call: Callable[[], None]) -> None:
        self.handled += 1
        call()
        for act in self.arbiter.take():
            self._act(act)
        self._plan_tick()

    def _act(self, act: Write | Hint) -> None:
        if isinstance(act, Write):
            line = self._lines[act.key, act.card]
            line.state, line.epoch, line.deadline = act.state, act.epoch, act.deadline_ns
            self.grants += bool(act.state)
        else:
            for process in self._processes[act.key, act.card]:
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
