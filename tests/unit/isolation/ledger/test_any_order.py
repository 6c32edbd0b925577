"""For any order of events, the ledger never lends beyond a limit and refuses nothing that fits.

A world of processes that follow the protocol, with a card that reports what they really hold. They belong to two
containers with one budget; a single container is the case where all belong to one. Its bookkeeping is naive: sums over
what exists. Deaths, detached processes, executed programs, slow samples, recalls and restarts of the broker come in any
order.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Budget, Process, State
from partage_isolation.ledger.quota_accounting import Defer, Lent, Patience, Refused, Verdict, lenders
from partage_isolation.ledger.samples import Beginning
from partage_isolation.names import budget_key
from partage_plugins.api.names import BudgetName, ContainerKey, PodUid
from support.extent import examples
from unit.isolation.ledger.keeping import CARD, KEY, MIB, OTHER, Kept, book, ledger_of, restarted

BUDGET = budget_key(PodUid("u1"), BudgetName("pod"))
LIMIT = 1024 * MIB
CONTEXT = 64 * MIB
_amounts = st.integers(min_value=1, max_value=400).map(lambda mib: mib * MIB)
_whom = st.integers(min_value=0, max_value=3)


@dataclass
class Program:
    """The real state of a process."""

    pid: int
    start: int
    token: bytes
    container: ContainerKey = KEY
    used: int = 0
    managed: int = 0
    """The part of `used` that the card attributes to no process."""
    lent: int = 0
    """The lent amount as its library knows it."""
    credit: int = 0
    changes: int = 0
    context: int = 0
    lag: int = 0
    """Freed by the program, and not yet by the driver."""
    alive: bool = True
    connected: bool = True

    @property
    def id(self) -> tuple[int, int]:
        return self.pid, self.start

    @property
    def held(self) -> int:
        return self.used + self.lag + self.context


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kept = Kept()
        self.ledger = ledger_of(LIMIT, self.kept, context=CONTEXT, budget=BUDGET)
        self.limit = LIMIT
        self.clock = 100
        self.programs: list[Program] = []
        self.lingering: list[Program] = []
        """Dead processes whose memory the driver has not freed yet."""
        self.samples: list[tuple[Beginning, dict[int, int], dict[int, int], dict[int, Amounts]]] = []
        self.tokens = 0

    # ---- Real state --------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> dict[int, int]:
        present = [*self.programs, *self.lingering]
        return {program.pid: program.held - program.managed for program in present if program.held > program.managed}

    @property
    def budget(self) -> Budget:
        return self.ledger.budgets[BUDGET]

    @property
    def charged(self) -> int:
        return self.budget.charged(0)

    def process(self, program: Program) -> Process:
        return self.budget.processes[program.id]

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def pick(self, index: int) -> Program | None:
        connected = [program for program in self.programs if program.connected]
        return connected[index % len(connected)] if connected else None

    def amounts(self, program: Program, lent: int | None = None) -> Amounts:
        lent = program.lent if lent is None else lent
        return Amounts(program.used, lent, program.changes, hidden=program.managed)

    # ---- Processes ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.programs) < 4)
    @rule(reuse=st.booleans(), container=st.sampled_from([KEY, OTHER]))
    def begin(self, reuse: bool, container: ContainerKey) -> None:  # noqa: FBT001
        """Start a process, perhaps with the pid of a dead one; pids of live processes are not reused."""
        self.tokens += 1
        living = {program.pid for program in self.programs}
        free = [each.pid for each in self.lingering if not each.held and each.pid not in living]
        pid = free[0] if reuse and free else 100 + self.tokens
        program = Program(pid, self.tokens, self.tokens.to_bytes(16, "big"), container)
        assert self.ledger.lives.begin(container, program.id, program.token)
        self.programs.append(program)

    @rule(index=_whom)
    def hang_up(self, index: int) -> None:
        program = self.pick(index)
        if program:
            program.connected = False
            self.ledger.lives.hung_up(self.process(program))

    @rule()
    def come_again(self) -> None:
        for program in self.programs:
            if not program.connected:
                assert self.ledger.lives.resume(program.container, program.id, program.token)
                program.connected = True
                self.ledger.accounting.told(self.process(program), 0, self.amounts(program))

    @rule(index=_whom)
    def execute(self, index: int) -> None:
        """The driver frees everything eventually; the new program knows nothing of the old one."""
        program = self.pick(index)
        if program:
            self.tokens += 1
            program.token = self.tokens.to_bytes(16, "big")
            program.lag += program.used - program.managed
            program.used = program.managed = program.lent = program.credit = program.changes = program.context = 0
            before = self.charged
            assert self.ledger.lives.begin(program.container, program.id, program.token) is self.process(program)
            assert self.charged == before

    @rule(index=_whom, at_once=st.booleans())
    def die(self, index: int, at_once: bool) -> None:  # noqa: FBT001
        if not self.programs:
            return
        program = self.programs.pop(index % len(self.programs))
        program.alive = False
        if at_once:
            program.used = program.managed = program.lag = program.context = 0
        elif program.held == program.managed:  # a card lists a process as long as it holds anything else of it
            program.used = program.managed = 0
        self.lingering.append(program)
        self.ledger.lives.died(self.process(program), self.now())

    @rule()
    def driver_frees(self) -> None:
        self.lingering = []
        for program in self.programs:
            program.lag = 0

    # ---- Memory ------------------------------------------------------------------------------------------------------

    @rule(index=_whom, amount=_amounts, managed=st.booleans())
    def take(self, index: int, amount: int, managed: bool = False) -> None:  # noqa: FBT001, FBT002
        program = self.pick(index)
        if program is None:
            return
        wanted = program.used + amount
        if wanted > program.lent and not self.ask(program, wanted):
            return
        program.used = wanted
        program.changes += 1
        if managed:
            self.hide(program, amount)

    @rule(index=_whom, amount=_amounts, later=st.booleans())
    def free(self, index: int, amount: int, later: bool) -> None:  # noqa: FBT001
        program = self.pick(index)
        if program is None:
            return
        amount = min(program.used - program.managed, amount)
        program.lag += amount if later else 0
        self.is_free(program, amount)

    @rule(index=_whom, amount=_amounts)
    def free_managed(self, index: int, amount: int) -> None:
        """The driver has the memory back when the call returns."""
        program = self.pick(index)
        if program is not None:
            amount = min(program.managed, amount)
            self.hide(program, -amount)
            self.is_free(program, amount)

    def hide(self, program: Program, amount: int) -> None:
        """Reported before the driver is asked for it, and after the driver has taken it back."""
        program.managed += amount
        program.changes += 1
        self.ledger.accounting.told(self.process(program), 0, self.amounts(program))

    def is_free(self, program: Program, amount: int) -> None:
        program.used -= amount
        program.changes += 1
        if program.lent - program.used > program.credit:
            program.lent = program.used + program.credit
            self.ledger.accounting.returned(self.process(program), 0, self.amounts(program))

    @rule(index=_whom)
    def make_context(self, index: int) -> None:
        program = self.pick(index)
        if program is None or program.context:
            return
        process = self.process(program)
        verdict = self.ledger.accounting.context(process, 0, self.amounts(program))
        if isinstance(verdict, Defer):
            self.settle(process)
            verdict = self.ledger.accounting.context(process, 0, self.amounts(program), patience=Patience.NONE)
        if isinstance(verdict, Lent):
            assert self.charged <= max(self.limit, self.charged)
            program.context = CONTEXT
            self.ledger.accounting.context_ended(process, 0, made=True)

    def ask(self, program: Program, wanted: int) -> bool:
        process = self.process(program)
        verdict = self.ledger.accounting.lend(process, 0, self.amounts(program, wanted))
        if isinstance(verdict, Defer):
            self.settle(process)
            verdict = self.ledger.accounting.lend(process, 0, self.amounts(program, wanted), patience=Patience.NONE)
        self.judge(program, wanted, verdict)
        assert isinstance(verdict, Lent | Refused)
        program.lent = verdict.lent
        if isinstance(verdict, Lent):
            program.credit = verdict.lent - wanted
        return isinstance(verdict, Lent)

    def judge(self, program: Program, wanted: int, verdict: Verdict) -> None:
        """Nothing exceeds the limit; nothing is refused that would fit if processes had only what they really hold."""
        again = self.ledger.accounting.lend(
            self.process(program), 0, self.amounts(program, wanted), patience=Patience.NONE
        )
        assert again == verdict
        if isinstance(verdict, Lent):
            assert self.charged <= self.limit
            return
        assert isinstance(verdict, Refused)
        others = sum(each.held for each in [*self.programs, *self.lingering] if each is not program)
        unheard = sum(self.slack(each) for each in self.programs if each is not program)
        settling = sum(self.settling(each) for each in self.all())
        assert others + wanted + program.lag + self.fixed() + unheard + settling > self.limit

    def slack(self, program: Program) -> int:
        """Credit of a process that can't be asked for it."""
        account = self.process(program).accounts.get(0)
        return 0 if program.connected or account is None else account.lent - program.used

    def settling(self, process: Process) -> int:
        """Managed memory of dead processes, charged until no sample lists them."""
        account = process.accounts.get(0)
        return account.hidden if account is not None and process.state is State.DEAD else 0

    def fixed(self) -> int:
        """The charge for contexts: a measured one may fall later than the context is really gone."""
        return self.budget.fixed(0)

    def settle(self, asker: Process) -> None:
        """The other processes return their credit, and a sample is taken."""
        for process in list(lenders(self.budget, 0, asker)):
            program = next(each for each in self.programs if each.id == process.id)
            program.lent, program.credit = program.used, 0
            self.ledger.accounting.returned(process, 0, self.amounts(program))
        self.sample_at_once()

    # ---- Samples -----------------------------------------------------------------------------------------------------

    def reports(self) -> dict[int, Amounts]:
        return {program.pid: self.amounts(program) for program in self.programs if program.connected}

    @rule()
    def sample_at_once(self) -> None:
        self.sample_begins()
        self.sample_ends()

    @precondition(lambda self: len(self.samples) < 2)
    @rule()
    def sample_begins(self) -> None:
        reports = self.reports()
        beginning = rules.begin(self.ledger, CARD, self.now())
        self.samples.append((beginning, self.shown, {each.pid: each.start for each in self.programs}, reports))

    @precondition(lambda self: self.samples)
    @rule()
    def sample_looks(self) -> None:
        """The driver is asked only now."""
        beginning, _, _, reports = self.samples.pop()
        self.samples.append((beginning, self.shown, {each.pid: each.start for each in self.programs}, reports))

    @precondition(lambda self: self.samples)
    @rule(is_oldest=st.booleans())
    def sample_ends(self, is_oldest: bool = False) -> None:  # noqa: FBT001, FBT002
        beginning, shown, starts, before = self.samples.pop(0 if is_oldest else -1)
        after = self.reports()
        exact: dict[tuple[int, int], int] = {}
        for program in self.programs:
            used = rules.exact_used(before.get(program.pid), after.get(program.pid))
            if used is not None:
                exact[program.id] = used
        rules.apply(self.ledger, beginning, rules.Shown(shown, starts, exact))

    # ---- The broker --------------------------------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        """Kill the broker at any moment; processes reconnect later."""
        before = {process.id: sum(each.total for each in process.accounts.values()) for process in self.all()}
        self.ledger = restarted(self.kept, self.limit, context=CONTEXT, budget=BUDGET)
        self.limit_is(self.limit)
        self.samples = []
        for program in self.programs:
            program.connected = False
        living = {program.id for program in self.programs}
        for process in list(self.budget.processes.values()):
            if process.id not in living and process.state is not State.DEAD:
                self.ledger.lives.died(process, self.now())
        after = {process.id: sum(each.total for each in process.accounts.values()) for process in self.all()}
        assert all(after.get(who, 0) == amount for who, amount in before.items() if amount)

    @rule(limit=st.sampled_from([LIMIT, LIMIT // 2, LIMIT // 4]))
    def limit_is(self, limit: int) -> None:
        self.limit = limit
        self.budget.cards = (book(LIMIT, lowered=limit),)

    def all(self) -> list[Process]:
        return list(self.budget.processes.values())

    # ---- Invariants --------------------------------------------------------------------------------------------------

    @invariant()
    def whatever_is_held_is_charged(self) -> None:
        for program in [*self.programs, *self.lingering]:
            process = self.budget.processes.get(program.id)
            account = process.accounts.get(0) if process else None
            assert (account.total if account else 0) >= program.used + program.lag, (program, account)

    @invariant()
    def no_library_believes_that_it_was_lent_more_than_it_was(self) -> None:
        for program in self.programs:
            account = self.process(program).accounts.get(0)
            assert program.lent <= (account.lent if account else 0)

    @invariant()
    def nothing_is_negative(self) -> None:
        for process in self.all():
            for account in process.accounts.values():
                assert min(account.lent, account.unproved, account.overhead, account.reserved) >= 0

    def teardown(self) -> None:
        """At the end, with all processes gone and the driver done, nothing is charged."""
        for program in list(self.programs):
            self.ledger.lives.died(self.process(program), self.now())
        self.programs, self.lingering, self.samples = [], [], []
        self.sample_at_once()
        assert self.charged == 0
        assert not self.all()
        assert not self.kept.rows


World.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=40)
TestAnyOrder = pytest.mark.slow(World.TestCase)


def test_a_sample_from_before_another_program_was_executed_says_nothing_of_the_context_that_is_gone() -> None:
    world = World()
    world.begin(reuse=False, container=KEY)
    world.make_context(index=0)
    world.sample_begins()
    world.take(index=0, amount=65 * MIB)
    world.execute(index=0)
    world.sample_at_once()
    world.sample_ends()
    world.whatever_is_held_is_charged()
