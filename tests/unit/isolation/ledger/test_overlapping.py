"""Samples of one card overlap: an older one that arrives after a later one makes nothing of what is gone by then."""

from __future__ import annotations

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.samples import Beginning, Shown
from unit.isolation.ledger.keeping import CARD, MIB, charged, ledger_of, process_of

LIMIT = 1024 * MIB
HELD, MORE = 100 * MIB, 40 * MIB
PID = 10


def shown(amount: int, exact: int | None = None) -> Shown:
    return Shown({PID: amount}, {PID: 1}, {} if exact is None else {(PID, 1): exact})


def overtaken() -> tuple[Ledger, Beginning]:
    """While the older sample runs the process takes more, and frees it; a later one is over first."""
    ledger = ledger_of(LIMIT)
    process = process_of(ledger, PID)
    ledger.lending.lend(process, 0, Amounts(0, HELD))
    ledger.lending.returned(process, 0, Amounts(HELD, HELD))
    older = rules.begin(ledger, CARD, 1)
    ledger.lending.lend(process, 0, Amounts(HELD, HELD + MORE))
    ledger.lending.returned(process, 0, Amounts(HELD, HELD))
    later = rules.begin(ledger, CARD, 2)
    rules.apply(ledger, later, shown(HELD))
    return ledger, older


def test_what_a_later_sample_proved_free_an_older_one_does_not_charge_again() -> None:
    ledger, older = overtaken()
    assert charged(ledger) == HELD
    rules.apply(ledger, older, shown(HELD + MORE))
    assert charged(ledger) == HELD


def test_a_sample_after_it_counts_again() -> None:
    ledger, older = overtaken()
    rules.apply(ledger, older, shown(HELD + MORE))
    rules.apply(ledger, rules.begin(ledger, CARD, 3), shown(HELD + MORE))
    assert charged(ledger) == HELD + MORE


def test_an_overtaken_sample_measures_who_changed_nothing_all_the_while() -> None:
    ledger = ledger_of(LIMIT)
    process = process_of(ledger, PID)
    ledger.lending.lend(process, 0, Amounts(0, HELD))
    ledger.lending.returned(process, 0, Amounts(HELD, HELD))
    older = rules.begin(ledger, CARD, 1)
    rules.apply(ledger, rules.begin(ledger, CARD, 2), shown(HELD))
    rules.apply(ledger, older, shown(HELD + MORE, exact=HELD))
    assert charged(ledger) == HELD + MORE
