"""Charges follow every change: the sums that are kept equal those of a full recount.

Processes that follow no protocol, in any order, on two cards, with a journal that may be full, and restarts.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts, Charge
from partage_isolation.ledger.budget import Budget, Process
from partage_isolation.ledger.pieces import Shared
from partage_isolation.ledger.quota_accounting import Patience
from partage_plugins.api.names import CardId
from support.extent import examples
from unit.isolation.ledger.keeping import CARD, KEY, MIB, Kept, book, ledger_of, restarted

LIMIT = 1024 * MIB
CARDS = (CARD, CardId("GPU-00000000-0000-0000-0000-000000000001"))
_whom = st.integers(0, 3)
_cards = st.sampled_from((0, 1))
_bytes = st.one_of(st.integers(0, 2 * LIMIT), st.sampled_from((0, MIB, LIMIT, 1 << 60, (1 << 64) - 1)))
_amounts = st.builds(Amounts, _bytes, _bytes, st.integers(0, 3), st.integers(0, 1), hidden=_bytes)
_shared = st.builds(Shared, st.integers(0, 3), st.integers(0, 3), _bytes, _bytes)


def anew(budget: Budget, card: int) -> Charge:
    accounts = [account for _, account in budget.accounts(card)]
    return Charge(sum(each.lent + each.unproved for each in accounts), sum(each.fixed for each in accounts))


class World(RuleBasedStateMachine):
    @initialize(room=st.sampled_from((4, 8, 10_000)))
    def begins(self, room: int) -> None:
        self.kept = Kept(room)
        self.ledger = ledger_of(LIMIT, self.kept, context=64 * MIB)
        self.clock = 0
        self.has_two_cards()

    def has_two_cards(self) -> None:
        self.ledger.put(KEY, tuple(book(LIMIT, card) for card in CARDS))

    @property
    def budget(self) -> Budget:
        return self.ledger.containers[KEY]

    def process(self, index: int) -> Process | None:
        every = list(self.budget.processes.values())
        return every[index % len(every)] if every else None

    def now(self) -> int:
        self.clock += 1
        return self.clock

    @rule(pid=_whom, start=st.integers(0, 1))
    def begin(self, pid: int, start: int) -> None:
        self.ledger.lives.begin(KEY, (pid, start), self.now().to_bytes(16, "big"))

    @rule(pid=_whom, card=_cards, amount=_bytes)
    def found(self, pid: int, card: int, amount: int) -> None:
        self.ledger.lives.found(KEY, (pid, 2), self.now().to_bytes(16, "big"), card=card, amount=amount)

    @rule(index=_whom, card=_cards, amounts=_amounts, patience=st.sampled_from(Patience), context=st.booleans())
    def ask(self, index: int, card: int, amounts: Amounts, patience: Patience, context: bool) -> None:  # noqa: FBT001
        process, accounting = self.process(index), self.ledger.accounting
        if process is not None:
            (accounting.context if context else accounting.lend)(process, card, amounts, patience=patience)

    @rule(index=_whom, card=_cards, amounts=_amounts, what=st.sampled_from(("returned", "told", "made", "failed")))
    def tell(self, index: int, card: int, amounts: Amounts, what: str) -> None:
        process, accounting = self.process(index), self.ledger.accounting
        if process is None:
            return
        if what in ("made", "failed"):
            accounting.context_ended(process, card, made=what == "made")
        else:
            (accounting.returned if what == "returned" else accounting.told)(process, card, amounts)

    @rule(index=_whom, card=_cards, said=_shared, what=st.sampled_from(("export", "leave", "open", "close")))
    def share(self, index: int, card: int, said: Shared, what: str) -> None:
        process, sharing = self.process(index), self.ledger.sharing
        if process is None:
            return
        if what == "close":
            sharing.closed(process, said)
        else:
            ask = {"export": sharing.exported, "leave": sharing.left, "open": sharing.opened}[what]
            ask(process, card, said)

    @rule(index=_whom)
    def die(self, index: int) -> None:
        process = self.process(index)
        if process is not None:
            self.ledger.lives.died(process, self.now())

    @rule(card=_cards, shown=st.dictionaries(_whom, _bytes), exact=st.booleans())
    def sample(self, card: int, shown: dict[int, int], exact: bool) -> None:  # noqa: FBT001
        used = {process.id: process.pid * MIB for process in self.budget.processes.values()} if exact else {}
        beginning = rules.begin(self.ledger, CARDS[card], self.now())
        rules.apply(self.ledger, beginning, rules.Shown(shown, {}, used))

    @rule()
    def restart(self) -> None:
        """A restart may lose what did not fit."""
        self.ledger = restarted(self.kept, LIMIT, context=64 * MIB)
        self.has_two_cards()

    @invariant()
    def the_sums_are_those_of_all_accounts(self) -> None:
        if hasattr(self, "ledger"):
            assert [self.budget.charges.on(card) for card in (0, 1)] == [anew(self.budget, card) for card in (0, 1)]


World.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=40)
TestSums = pytest.mark.slow(World.TestCase)
