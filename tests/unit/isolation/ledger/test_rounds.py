"""A confirmed refusal is right: at some moment during the request, all claims together exceeded the limit."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from partage_isolation.ledger import rounds
from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.quota_accounting import Defer, Lent, Patience, Refused, Verdict, holders, lenders
from support.extent import examples
from unit.isolation.ledger.keeping import CARD, KEY, MIB, ledger_of, process_of

LIMIT = 128 * MIB
MOST_ROUNDS = 6
NEWS = 0.15
Step = Generator[None]


@dataclass
class Packet:
    amounts: Amounts
    is_question: bool
    number: int = 0


@dataclass
class Answer:
    verdict: Verdict
    returns: int


@dataclass(eq=False)
class Program:
    """One thread asks at a time; others free, and take what credit covers."""

    process: Process
    held: list[int] = field(default_factory=list[int])
    lent: int = 0
    credit: int = 0
    granted: int = 0
    is_dry: bool = False
    changes: int = 0
    returns: int = 0
    recalled: int = 0
    asks_for: int = 0
    is_owed: bool = False
    has_returned: bool = False
    changes_before: int = 0
    since: int = 0
    """The position in the history of claims at which its call began."""
    calls: deque[Packet] = field(default_factory=deque[Packet])
    hints: deque[int] = field(default_factory=deque[int])
    answers: deque[Answer] = field(default_factory=deque[Answer])

    @property
    def claimed(self) -> int:
        return sum(self.held) + self.asks_for

    def amounts(self, lent: int | None = None) -> Amounts:
        used = self.lent - self.credit
        return Amounts(used, self.lent if lent is None else lent, self.changes, 0, self.returns)

    def ask(self) -> None:
        self.changes_before, self.has_returned = self.changes, False
        self.calls.append(Packet(self.amounts(self.lent - self.credit + self.asks_for), is_question=True))

    def spend(self, amount: int) -> bool:
        if self.credit < amount:
            return False
        self.credit, self.changes = self.credit - amount, self.changes + 1
        self.held.append(amount)
        return True

    def free(self, which: int) -> None:
        self.credit, self.changes = self.credit + self.held.pop(which % len(self.held)), self.changes + 1
        may_stay = 0 if self.is_dry else self.granted
        if self.credit > may_stay and self.asks_for:
            self.is_owed = True
        elif self.credit > may_stay:
            self.give_back(may_stay, 0)

    def give_back(self, keep: int, number: int) -> None:
        less = max(0, self.credit - keep)
        self.credit, self.lent, self.returns = self.credit - less, self.lent - less, self.returns + 1
        self.calls.append(Packet(self.amounts(), is_question=False, number=number))

    def hear_recall(self) -> None:
        self.recalled, self.is_dry, self.has_returned = self.hints.popleft(), True, True
        self.give_back(0, self.recalled)

    def leave(self) -> None:
        self.asks_for = 0
        if self.is_owed:
            self.is_owed, self.is_dry = False, True
            self.give_back(0, self.recalled)


class World:
    """A few processes, a broker and a card, with one event at a time, in any order.

    The processes act as the library does, the broker as `wire/parked.py`, over the real ledger. A packet waits in its
    queue until the broker reads it, a hint until the process does. All claims are recorded: a process claims what it
    asks for before it asks, and gives the claim up after it has reported what it freed.
    """

    def __init__(self, seed: int, count: int) -> None:
        self.random = Random(seed)  # noqa: S311 (choices that can be repeated)
        self.ledger: Ledger = ledger_of(LIMIT)
        self.programs = [Program(process_of(self.ledger, 10 + number)) for number in range(count)]
        for program in self.programs:
            program.process.is_prompt = True
        self.budget = self.ledger.containers[KEY]
        self.claims = [0]
        self.deferred: dict[Program, Step] = {}
        self.heard: set[int] = set()
        self.numbers = itertools.count(1)
        self.refused = self.lent = 0

    # ---- Events ------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Mostly continue something that is in progress."""
        under_way = list(self.under_way())
        is_new = not under_way or self.random.random() < NEWS
        self.random.choice(list(self.new()) if is_new else under_way)()
        self.claims.append(sum(program.claimed for program in self.programs))

    def new(self) -> Generator[Callable[[], None]]:
        for program in self.programs:
            yield partial(self.take, program)
            if program.held:
                yield partial(program.free, self.random.randrange(8))

    def under_way(self) -> Generator[Callable[[], None]]:
        for program in self.programs:
            if program.calls:
                yield partial(self.read, program)
            if program.hints:
                yield program.hear_recall
            if program.answers:
                yield partial(self.answered, program)
            if program in self.deferred:
                yield partial(self.go_on, program)

    def take(self, program: Program) -> None:
        amount = 2 * MIB * self.random.randint(1, 16)
        if program.spend(amount) or program.asks_for:
            return
        program.asks_for, program.since = amount, len(self.claims)
        program.ask()

    def answered(self, program: Program) -> None:
        answer, amount = program.answers.popleft(), program.asks_for
        is_old = program.has_returned and answer.returns != program.returns
        if not is_old:
            assert isinstance(answer.verdict, Lent | Refused)
            program.credit += answer.verdict.lent - program.lent
            program.lent = answer.verdict.lent
        if isinstance(answer.verdict, Lent) and not is_old:
            program.granted = program.credit - amount
            program.is_dry = program.is_dry and program.granted <= 0
        if program.spend(amount):
            self.lent += 1
            program.leave()
        elif is_old or isinstance(answer.verdict, Lent) or not self.believes(program, answer.verdict):
            program.ask()
        else:
            self.refused += 1
            assert max([*self.claims[program.since :], sum(each.claimed for each in self.programs)]) > LIMIT
            program.leave()

    def believes(self, program: Program, verdict: Verdict) -> bool:
        return program.changes == program.changes_before and isinstance(verdict, Refused) and verdict.is_sure

    # ---- The broker --------------------------------------------------------------------------------------------------

    def read(self, program: Program) -> None:
        packet, process = program.calls.popleft(), program.process
        if not packet.is_question:
            self.ledger.accounting.returned(process, 0, packet.amounts)
            if packet.number and packet.number not in self.heard:
                self.heard.add(packet.number)
                process.accounts[0].is_dry = packet.amounts.lent <= packet.amounts.used
            return
        verdict = self.ledger.accounting.lend(process, 0, packet.amounts)
        if isinstance(verdict, Defer):
            self.budget.waiting[process] = 0
            self.deferred[program] = self.decided(program, packet.amounts)
        else:
            self.answer(program, verdict)

    def go_on(self, program: Program) -> None:
        if next(self.deferred[program], self) is self:
            del self.deferred[program]

    def answer(self, program: Program, verdict: Verdict) -> None:
        self.budget.waiting.pop(program.process, None)
        account = program.process.accounts.get(0)
        assert self.budget.charged(0) <= LIMIT
        program.answers.append(Answer(verdict, account.returns if account else 0))

    def decided(self, program: Program, amounts: Amounts) -> Step:
        process, lend = program.process, self.ledger.accounting.lend
        is_sure = False
        for _ in range(MOST_ROUNDS):
            began = rounds.begin(self.budget, 0, process)
            yield from self.recalled(process)
            now = lend(process, 0, amounts, Patience.PROOF)
            if isinstance(now, Defer):
                yield from self.sampled()
                now = lend(process, 0, amounts, Patience.PROOF)
            if isinstance(now, Lent):
                self.answer(program, now)
                return
            is_sure = rounds.is_sure(self.budget, 0, began)
            if is_sure:
                break
            yield
        last = lend(process, 0, amounts, Patience.NONE)
        self.answer(program, Refused(last.lent, is_sure) if isinstance(last, Refused) else last)

    def recalled(self, asker: Process) -> Step:
        asked = set[int]()
        for process in lenders(self.budget, 0, asker):
            number = next(self.numbers)
            asked.add(number)
            next(each for each in self.programs if each.process is process).hints.append(number)
        assert len(asked) == len(list(holders(self.budget, 0, asker)))
        while not asked <= self.heard:
            yield

    def sampled(self) -> Step:
        beginning = rules.begin(self.ledger, CARD, 10)
        yield
        shown = {program.process.pid: sum(program.held) for program in self.programs if program.held}
        yield
        rules.apply(self.ledger, beginning, rules.Shown(shown, {}))


STEPS = 300


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 4))
def test_whatever_happens_in_between_nobody_is_refused_with_room(seed: int, count: int) -> None:
    world = World(seed, count)
    for _ in range(STEPS):
        world.step()


def test_most_refusals_become_sure_and_room_is_lent() -> None:
    world = World(1, 3)
    for _ in range(20 * STEPS):
        world.step()
    assert world.refused > 20
    assert world.lent > 20


def test_one_that_is_stopped_makes_no_refusal_unsure_by_what_it_holds_unused_or_unmeasured() -> None:
    ledger = ledger_of(1024 * MIB, context=100 * MIB)
    stopped, asker = process_of(ledger, 10), process_of(ledger, 11)
    ledger.accounting.lend(stopped, 0, Amounts(0, 600 * MIB))
    ledger.accounting.context(stopped, 0, Amounts(0, 600 * MIB))
    ledger.accounting.context_ended(stopped, 0, made=True)
    budget = ledger.containers[KEY]
    for who, is_sure in ((frozenset({stopped}), True), (frozenset(), False)):
        assert rounds.is_sure(budget, 0, rounds.begin(budget, 0, asker, who)) is is_sure
