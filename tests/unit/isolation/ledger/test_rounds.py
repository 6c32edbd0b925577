"""A confirmed refusal is right: at some moment during the request, all claims together exceeded the limit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from partage_isolation.ledger import rounds
from partage_isolation.ledger.account import Amounts
from support.extent import examples
from unit.isolation.ledger.callers import World
from unit.isolation.ledger.keeping import KEY, MIB, ledger_of, process_of

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
