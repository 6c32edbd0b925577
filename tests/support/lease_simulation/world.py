"""A simulated node: a broker, cards and the processes of containers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.durations import SECOND
from partage_plugins.api.names import CardId
from support.lease_simulation.broker import SimulatedBroker
from support.lease_simulation.cases import Case, Container, Trouble, What
from support.lease_simulation.events import Chance, Events
from support.lease_simulation.figures import Figures, seconds_of
from support.lease_simulation.gpu import BIN_NS, Gpu, Meeting
from support.lease_simulation.process import Process

_BEGIN = 1_000 * SECOND
_DEATH_NS = 200_000


def run(case: Case) -> Figures:
    return World(case).run()


def _card(number: int) -> CardId:
    return CardId(f"card-{number}")


def _key(number: int) -> BudgetKey:
    return BudgetKey(f"container-{number}")


class World:
    def __init__(self, case: Case, *, arbiter: Callable[..., Arbiter] = Arbiter) -> None:
        self._case, self._events = case, Events(_BEGIN)
        self._chance = Chance(case.seed)
        self.broker = SimulatedBroker(case, self._events, self._chance, arbiter=arbiter)
        self._bins: list[dict[int, float]] = [{} for _ in case.containers]
        self._gpus: dict[int, Gpu] = {}
        self._of: list[list[Process]] = []
        self._meetings: dict[tuple[int | str, int], Meeting] = {}
        for number, container in enumerate(case.containers):
            self._add(number, container)

    def run(self) -> Figures:
        case, broker = self._case, self.broker
        self._events.run_until(_BEGIN + case.lasts_ns)
        first, last = (_BEGIN + case.skip_ns) // BIN_NS, (_BEGIN + case.lasts_ns) // BIN_NS
        told = broker.arbiter.shares(self._events.now)
        return Figures(
            used=tuple(seconds_of(bins, first, last, SECOND // BIN_NS) for bins in self._bins),
            took_ns=tuple(self._took(processes) for processes in self._of),
            overlapped=sum(gpu.overlapped_ns for gpu in self._gpus.values()) / case.lasts_ns,
            grants=broker.grants,
            told={number: told[_key(number), _card(each.cards[0])] for number, each in enumerate(case.containers)},
            events=broker.handled,
        )

    def _took(self, processes: list[Process]) -> tuple[int, ...]:
        since = _BEGIN + self._case.skip_ns
        return tuple(took for process in processes for at, took in process.took if at >= since)

    # ---- Setup -------------------------------------------------------------------------------------------------------

    def _add(self, number: int, container: Container) -> None:
        begin = _BEGIN + container.begins_ns
        for card in container.cards:
            self._gpus.setdefault(card, Gpu(self._events))
            self.broker.put((_key(number), _card(card)), container.share, container.limit, container.gang)
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
            self.broker,
            gpu=self._gpus[card],
            line=self.broker.lines[place],
            bins=self._bins[number],
            program=container.workload(self._chance.fork(), _BEGIN + container.begins_ns),
            siblings=self.broker.processes[place],
            meet=partial(self._meeting, *self._peers(number, container)),
        )
        self.broker.knows(process, place)
        return process

    def _peers(self, number: int, container: Container) -> tuple[int | str, int]:
        """The group of its collectives, and the group's number of processes."""
        if not container.gang:
            return number, container.size
        return container.gang, sum(each.size for each in self._case.containers if each.gang == container.gang)

    def _meeting(self, whose: int | str, peers: int, number: int, work_ns: int) -> Meeting:
        """The collective with that number."""
        return self._meetings.setdefault((whose, number), Meeting(peers, work_ns))

    def _begin(self, process: Process) -> None:
        self.broker.joined(process)
        process.begin()

    def _happens(self, processes: list[Process], trouble: Trouble) -> None:
        process = processes[trouble.process]
        if trouble.what is What.STOPS:
            process.stop()
        elif trouble.what is What.GOES_ON:
            process.go_on()
        else:
            process.die()
            self._events.at(self._events.now + _DEATH_NS, partial(self.broker.left, process))
