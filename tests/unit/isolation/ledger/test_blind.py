"""A card that tells nothing of processes: what is unknown there is not nothing."""

from __future__ import annotations

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import Ledger
from unit.isolation.ledger.keeping import CARD, MIB, Kept, charged, ledger_of, process_of, restarted

LIMIT = 1024 * MIB
CONTEXT = 300 * MIB


def begun(ledger: Ledger, *, lent: int, context: bool = True) -> Process:
    process = process_of(ledger)
    if context:
        ledger.lending.context(process, 0, Amounts(0, 0))
        ledger.lending.context_ended(process, 0, made=True)
    ledger.lending.lend(process, 0, Amounts(0, lent))
    return process


def blind(ledger: Ledger, now_ns: int = 10) -> None:
    rules.apply_blind(ledger, rules.begin(ledger, CARD, now_ns))


def test_a_context_takes_what_contexts_usually_take() -> None:
    ledger = ledger_of(LIMIT, context=CONTEXT)
    process = begun(ledger, lent=100 * MIB)
    before = charged(ledger)
    for _ in range(5):
        blind(ledger)
    assert charged(ledger) == before
    assert process.accounts[0].overhead == CONTEXT
    assert not process.accounts[0].is_made, "nobody tries to measure it any more"


def test_contexts_are_remembered_over_a_restart() -> None:
    kept = Kept()
    ledger = ledger_of(LIMIT, kept, context=CONTEXT)
    begun(ledger, lent=100 * MIB)
    blind(ledger)
    assert charged(restarted(kept, LIMIT)) == charged(ledger)


def test_the_dead_are_charged_until_the_driver_has_had_time_to_let_go() -> None:
    ledger = ledger_of(LIMIT, context=CONTEXT)
    process = begun(ledger, lent=100 * MIB)
    blind(ledger)
    before = charged(ledger)
    ledger.lives.died(process, 1000)
    blind(ledger, 1000 + rules.BLIND_SETTLE_NS - 1)
    assert charged(ledger) == before
    blind(ledger, 1000 + rules.BLIND_SETTLE_NS)
    assert charged(ledger) == 0
    assert process.state is State.GONE


def test_what_a_living_process_gave_back_before_the_sample_is_believed() -> None:
    ledger = ledger_of(LIMIT)
    process = begun(ledger, lent=100 * MIB, context=False)
    ledger.lending.returned(process, 0, Amounts(0, 60 * MIB))
    beginning = rules.begin(ledger, CARD, 10)
    ledger.lending.returned(process, 0, Amounts(0, 20 * MIB))
    rules.apply_blind(ledger, beginning)
    assert charged(ledger) == 60 * MIB, "what came later waits for the next one"
    blind(ledger)
    assert charged(ledger) == 20 * MIB


def test_one_process_of_which_the_driver_does_not_say_is_left_as_it_is() -> None:
    ledger = ledger_of(LIMIT, context=CONTEXT)
    process = begun(ledger, lent=100 * MIB)
    before = charged(ledger)
    rules.apply(ledger, rules.begin(ledger, CARD, 10), rules.Shown({10: None}, {10: 1}, {process.id: 0}))
    assert charged(ledger) == before
    ledger.lives.died(process, 10)
    rules.apply(ledger, rules.begin(ledger, CARD, 20), rules.Shown({10: None}, {10: 1}))
    assert charged(ledger) == before
