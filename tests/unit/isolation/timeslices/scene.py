"""The broker's part of time slices without a broker: an arbiter scripted by the test, and recording connections."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from partage_isolation.ledger.budget import Budget, CardSpec, Process
from partage_isolation.metrics import Counters
from partage_isolation.names import BudgetKey, own_budget
from partage_isolation.store.row_bounds import RowBounds
from partage_isolation.timeslices.arbiter import Arbiter, Silent
from partage_isolation.timeslices.domains import Place
from partage_isolation.timeslices.line import LineState, Notify, Shares, Write
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import Connection, Served, Session
from partage_isolation.wire.packets import Packet, TimeSlice, What
from partage_isolation.wire.served import Registry
from partage_isolation.wire.timer import Timer
from partage_isolation.wire.timeslices import Terms, TimeSlices
from partage_plugins.api.names import CardId, ContainerKey
from support.broker import pod

KEY, OTHER = ContainerKey("0" * 32), ContainerKey("1" * 32)
OWN, OTHERS_OWN = own_budget(KEY), own_budget(OTHER)
CARDS = (CardId("GPU-first"), CardId("GPU-second"), CardId("GPU-free"))
TERMS = Terms("virtual-time", {CARDS[2]: "free-run"})


class FakeArbiter:
    """Records its calls; `acts` are taken next."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.acts: list[Write | Notify] = []
        self.due: int | None = None
        self.epochs = 7
        self.silents: list[Silent] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **more: self.said.append((name, *args, *more.values()))

    def take(self) -> list[Write | Notify]:
        acts, self.acts = self.acts, []
        return acts

    def line(self, key: BudgetKey, card: CardId) -> Write:
        return Write(key, card, LineState.SOLE, self.epochs, 0)

    def silent(self) -> list[Silent]:
        return self.silents

    def shares(self, _now: int) -> dict[Place, Shares]:
        return {}


class FakeConnection:
    """Records its hints; may break during one."""

    def __init__(self, timeslices: TimeSlices) -> None:
        self.timeslices, self.session = timeslices, cast("Session | None", None)
        self.hints: list[bytes] = []
        self.breaks = False

    def hint(self, packet: bytes) -> bool:
        self.hints.append(packet)
        if self.breaks:
            self.close()
        return not self.breaks

    def close(self) -> None:
        assert self.session is not None
        self.timeslices.hung_up(self.session, cast("Connection", self))


class FakePage:
    def __init__(self) -> None:
        self.written: list[tuple[int, int, bool]] = []

    def write(self, line: int, word: int, *, wake: bool) -> None:
        self.written.append((line, word, wake))


class FakeBucket:
    def __init__(self) -> None:
        self.cost = 0

    def spend(self, cost: int) -> None:
        self.cost += cost


class FakeAlarm:
    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring, self.at_ns, self.is_closed = ring, cast("int | None", None), False

    def set(self, at_ns: int | None) -> None:
        self.at_ns = at_ns

    def close(self) -> None:
        self.is_closed = True


class FakeServed:
    def __init__(self, budget: Budget) -> None:
        self.budget, self.spec = budget, SimpleNamespace(pod=pod())
        self.page = FakePage()
        self.bucket = FakeBucket()


class Scene:
    """One broker's time slices, and two containers."""

    def __init__(self) -> None:
        self.arbiter, self.counters = FakeArbiter(), Counters()
        self.registry = Registry(RowBounds())
        self.served = dict[ContainerKey, FakeServed]()
        for key in (KEY, OTHER):
            self.enter(key, own_budget(key))
        self.alarms: list[FakeAlarm] = []
        self.timeslices = TimeSlices(
            cast("Arbiter", self.arbiter),
            registry=self.registry,
            terms=TERMS,
            counters=self.counters,
            timer=self._timer,
        )

    def enter(self, key: ContainerKey, budget: BudgetKey) -> FakeServed:
        """Add a container that uses this budget."""
        served = FakeServed(
            Budget(budget, tuple(CardSpec(id=card, memory=1 << 30, share=300, limit=1000) for card in CARDS))
        )
        self.served[key] = served
        self.registry.enter(key, cast("Served", served))
        return served

    def _timer(self, ring: Callable[[], None]) -> Timer:
        self.alarms.append(FakeAlarm(ring))
        return cast("Timer", self.alarms[-1])

    def session(self, key: ContainerKey = KEY, pid: int = 1) -> Session:
        calls, signals = (cast("Connection", FakeConnection(self.timeslices)) for _ in range(2))
        calls.session = signals.session = Session(Process(key, pid, 1, b"x" * 16), calls, signals)
        return calls.session

    def say(self, session: Session, what: What, card: int = 0, **timeslice: int) -> Packet | None:
        """Send a packet; return the answer."""
        packet = wire.read(wire.question(what, card=card, number=5, body=wire.lease_body(TimeSlice(**timeslice))))
        assert packet is not None
        answer = self.timeslices.answers[what](session, packet)
        return None if answer is None else wire.read(answer)

    def take_said(self) -> list[tuple[Any, ...]]:
        """The calls of the arbiter, without their times."""
        said, self.arbiter.said = self.arbiter.said, []
        return said
