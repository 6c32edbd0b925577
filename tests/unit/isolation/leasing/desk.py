"""An arbiter, its lines as processes would read them, and a clock in milliseconds."""

from __future__ import annotations

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.durations import MS, SECOND, Timing
from partage_isolation.timeslices.line import LineState, Shares, Write
from partage_isolation.timeslices.policies import by_name
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import Gang
from support.lease_simulation.standing import Line

CARD = CardId("one")
OTHER = CardId("two")
A, B, C = (BudgetKey(name) for name in "abc")
SOME_TIME = 1000 * SECOND


class Desk:
    """Calls the arbiter with short arguments, and applies its writes."""

    def __init__(self, policy: str = "virtual-time", **containers: int) -> None:
        timing = Timing(quantum_ns=20 * MS, drain_quanta=8)
        chosen = by_name(policy, timing)
        self.arbiter = Arbiter(policy=lambda _: chosen, timing=timing)
        self.now = SOME_TIME
        self.arbiter.tick(self.now)
        self.lines: dict[tuple[str, str], Line] = {}
        self.writes: list[Write] = []
        for name, share in containers.items():
            self.put(BudgetKey(name), share=share)
            self.join(BudgetKey(name))

    @property
    def ms(self) -> float:
        return (self.now - SOME_TIME) / MS

    def obey(self) -> None:
        for act in self.arbiter.take():
            if isinstance(act, Write):
                self.writes.append(act)
                self.write(act)

    def write(self, act: Write) -> None:
        self.lines[act.key, act.card] = Line(act.state, act.epoch, act.deadline_ns)

    def put(
        self, key: BudgetKey, *, share: int, limit: int = 1000, card: CardId = CARD, gang: Gang | None = None
    ) -> None:
        self.arbiter.put(key, card, share=share, limit=limit, gang=gang)
        self.write(self.arbiter.line(key, card))
        self.obey()

    def join(self, key: BudgetKey, member: str = "p", card: CardId = CARD) -> None:
        self.arbiter.joined(key, card, (key, member), self.now)
        self.obey()

    def leave(self, key: BudgetKey, member: str = "p", card: CardId = CARD) -> None:
        self.arbiter.left(key, card, (key, member), self.now)
        self.obey()

    def want(self, key: BudgetKey, member: str = "p", card: CardId = CARD) -> None:
        self.arbiter.wanted(key, card, (key, member), self.line(key, card).epoch, self.now)
        self.obey()

    def drain(
        self, key: BudgetKey, member: str = "p", card: CardId = CARD, *, blocked: bool = True, at: int | None = None
    ) -> None:
        epoch = self.line(key, card).epoch
        self.arbiter.drained(key, card, (key, member), epoch, at or self.now, blocked, self.now)
        self.obey()

    def idle(self, key: BudgetKey, member: str = "p", card: CardId = CARD) -> None:
        self.arbiter.idle(key, card, (key, member), self.line(key, card).epoch, self.now)
        self.obey()

    def stopped(self, key: BudgetKey, member: str = "p", card: CardId = CARD) -> None:
        self.arbiter.stopped(key, card, (key, member), self.now)

    def wait(self, ms: float) -> None:
        """Let time pass, with a tick whenever one is due."""
        end = self.now + round(ms * MS)
        while self.arbiter.due is not None and self.arbiter.due <= end:
            self.now = max(self.now, self.arbiter.due)
            self.arbiter.tick(self.now)
            self.obey()
        self.now = end

    def run(self, ms: int, *keys: BudgetKey) -> None:
        """Let time pass while these containers launch all the time, and report at once when their work is done."""
        for _ in range(ms):
            self.wait(1)
            for place, entry in list(self.arbiter.node.entries.items()):
                if entry.key in keys and self.state(*place) is LineState.CLOSED and entry.card.holder is entry:
                    self.drain(place[0], card=place[1])

    def line(self, key: BudgetKey, card: CardId = CARD) -> Line:
        return self.lines[key, card]

    def state(self, key: BudgetKey, card: CardId = CARD) -> LineState:
        """The state as a process sees it: a time slice past its deadline is closed."""
        line = self.line(key, card)
        is_over = line.state is LineState.TIMESLICE and line.deadline <= self.now
        return LineState.CLOSED if is_over else line.state

    def left_ms(self, key: BudgetKey, card: CardId = CARD) -> float:
        """The rest of the time slice; 0.02 ms are lost by rounding."""
        return round((self.line(key, card).deadline - self.now) / MS, 1)

    def shares(self, key: BudgetKey, card: CardId = CARD) -> Shares:
        return self.arbiter.shares(self.now)[key, card]
