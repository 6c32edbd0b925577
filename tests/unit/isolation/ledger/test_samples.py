"""What samples change: blind cards, overlapping processes, and learned sizes of contexts."""

from __future__ import annotations

from itertools import repeat
from typing import Final

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.samples import Beginning, ContextSizes, Shown
from partage_plugins.api.names import CardId
from unit.isolation.ledger.keeping import CARD, MIB, Kept, charged, ledger_of, process_of, restarted

LIMIT = 1024 * MIB
CONTEXT = 300 * MIB


def begun(ledger: Ledger, *, lent: int, context: bool = True) -> Process:
    process = process_of(ledger)
    if context:
        ledger.accounting.context(process, 0, Amounts(0, 0))
        ledger.accounting.context_ended(process, 0, made=True)
    ledger.accounting.lend(process, 0, Amounts(0, lent))
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
    blind(ledger, 1000 + rules.SETTLE_NS - 1)
    assert charged(ledger) == before
    blind(ledger, 1000 + rules.SETTLE_NS)
    assert charged(ledger) == 0
    assert process.state is State.GONE


def test_what_a_living_process_gave_back_before_the_sample_is_believed() -> None:
    ledger = ledger_of(LIMIT)
    process = begun(ledger, lent=100 * MIB, context=False)
    ledger.accounting.returned(process, 0, Amounts(0, 60 * MIB))
    beginning = rules.begin(ledger, CARD, 10)
    ledger.accounting.returned(process, 0, Amounts(0, 20 * MIB))
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


# ---- Samples that overlap --------------------------------------------------------------------------------------------


HELD, MORE = 100 * MIB, 40 * MIB
PID = 10


def shown(amount: int, exact: int | None = None) -> Shown:
    return Shown({PID: amount}, {PID: 1}, {} if exact is None else {(PID, 1): exact})


def overtaken() -> tuple[Ledger, Beginning]:
    """While the older sample runs, the process takes more and frees it; a later sample ends first."""
    ledger = ledger_of(LIMIT)
    process = process_of(ledger, PID)
    ledger.accounting.lend(process, 0, Amounts(0, HELD))
    ledger.accounting.returned(process, 0, Amounts(HELD, HELD))
    older = rules.begin(ledger, CARD, 1)
    ledger.accounting.lend(process, 0, Amounts(HELD, HELD + MORE))
    ledger.accounting.returned(process, 0, Amounts(HELD, HELD))
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
    ledger.accounting.lend(process, 0, Amounts(0, HELD))
    ledger.accounting.returned(process, 0, Amounts(HELD, HELD))
    older = rules.begin(ledger, CARD, 1)
    rules.apply(ledger, rules.begin(ledger, CARD, 2), shown(HELD))
    rules.apply(ledger, older, shown(HELD + MORE, exact=HELD))
    assert charged(ledger) == HELD + MORE


# ---- Managed memory, which no sample shows as a process's -----------------------------------------------------------


MANAGED = 600 * MIB


def with_managed() -> tuple[Ledger, Process]:
    """Managed memory is all that its process uses, apart from a context."""
    ledger = ledger_of(LIMIT, context=CONTEXT)
    process = begun(ledger, lent=MANAGED)
    ledger.accounting.told(process, 0, Amounts(MANAGED, MANAGED, 1, hidden=MANAGED))
    return ledger, process


def test_a_context_beside_managed_memory_is_charged() -> None:
    """Otherwise what the card shows would be taken for a part of what was lent."""
    ledger, process = with_managed()
    for _ in range(5):
        rules.apply(ledger, rules.begin(ledger, CARD, 10), shown(CONTEXT, exact=MANAGED))
    assert charged(ledger) == process.accounts[0].lent + CONTEXT


def test_what_was_freed_beside_managed_memory_is_charged_as_long_as_it_is_shown() -> None:
    ledger = ledger_of(LIMIT)
    process = begun(ledger, lent=MANAGED + HELD, context=False)
    ledger.accounting.told(process, 0, Amounts(MANAGED + HELD, MANAGED + HELD, 1, hidden=MANAGED))
    ledger.accounting.returned(process, 0, Amounts(MANAGED, MANAGED, 2, hidden=MANAGED))
    rules.apply(ledger, rules.begin(ledger, CARD, 10), shown(HELD))
    assert charged(ledger) == MANAGED + HELD
    rules.apply(ledger, rules.begin(ledger, CARD, 20), shown(0))
    assert charged(ledger) == MANAGED


def test_managed_memory_that_was_given_back_is_free_at_the_next_sample() -> None:
    ledger, process = with_managed()
    rules.apply(ledger, rules.begin(ledger, CARD, 10), shown(CONTEXT, exact=MANAGED))
    ledger.accounting.returned(process, 0, Amounts(0, 0, 2))
    rules.apply(ledger, rules.begin(ledger, CARD, 20), shown(CONTEXT))
    assert charged(ledger) == CONTEXT


def test_what_was_said_before_the_last_word_says_nothing_of_managed_memory() -> None:
    ledger, process = with_managed()
    ledger.accounting.told(process, 0, Amounts(0, MANAGED, 0))
    assert process.accounts[0].hidden == MANAGED


def test_managed_memory_of_the_dead_is_charged_as_long_as_the_card_lists_them() -> None:
    ledger, process = with_managed()
    ledger.lives.died(process, 1000)
    for began in (1000, 2000 + rules.SETTLE_NS):
        rules.apply(ledger, rules.begin(ledger, CARD, began), Shown({PID: MIB}, {}))
        assert charged(ledger) == MANAGED + MIB
    rules.apply(ledger, rules.begin(ledger, CARD, 999), Shown({}, {}))
    assert charged(ledger) == MANAGED + MIB, "of a sample that began while it lived"
    rules.apply(ledger, rules.begin(ledger, CARD, 3000 + rules.SETTLE_NS), Shown({}, {}))
    assert charged(ledger) == 0
    assert process.state is State.GONE


def test_an_older_report_that_comes_late_changes_nothing_of_what_is_managed() -> None:
    ledger, process = with_managed()
    for changes, hidden in ((3, HELD), (1, MANAGED), (2, 0)):
        ledger.accounting.told(process, 0, Amounts(MANAGED, MANAGED, changes, hidden=hidden))
    assert process.accounts[0].hidden == HELD


def test_a_process_can_not_say_more_of_managed_memory_than_was_ever_granted() -> None:
    ledger = ledger_of(LIMIT)
    process = process_of(ledger, PID)
    ledger.accounting.told(process, 0, Amounts(2**64 - 1, 0, 1, hidden=2**64 - 1))
    rules.apply(ledger, rules.begin(ledger, CARD, 10), shown(CONTEXT))
    assert charged(ledger) == LIMIT + CONTEXT


# ---- The sizes of contexts -------------------------------------------------------------------------------------------


TWIN, OTHER = CardId("GPU-2"), CardId("GPU-3")
SMALL, LARGE = 500 << 20, 3 << 30
_MANY: Final = 1000


def learned(*sizes: int) -> ContextSizes:
    all_sizes = ContextSizes()
    for card in (CARD, TWIN):
        all_sizes.is_model(card, "H200")
    for size in sizes:
        all_sizes.learned(CARD, size)
    return all_sizes


def test_a_large_one_does_not_refuse_the_next_ones_in_small_slices() -> None:
    assert learned(SMALL, LARGE).size(CARD) == SMALL
    assert learned(*repeat(SMALL, 20), *repeat(LARGE, 10)).size(CARD) == SMALL
    assert learned(LARGE, SMALL).size(CARD) == SMALL


def test_where_all_become_larger_that_is_learned() -> None:
    """For example with another driver; only the last ones are kept."""
    assert learned(*repeat(SMALL, _MANY), *repeat(LARGE, 30)).size(CARD) == LARGE


def test_they_are_learned_for_all_cards_of_a_model_and_handed_to_the_next_broker() -> None:
    sizes = learned(SMALL, LARGE)
    assert (sizes.size(TWIN), sizes.size(OTHER)) == (SMALL, None)
    assert sizes.known == {"H200": SMALL}
    again = ContextSizes(sizes.known)
    again.is_model(TWIN, "H200")
    assert again.size(TWIN) == SMALL


def test_only_what_changes_the_size_is_news() -> None:
    sizes = ContextSizes()
    assert [sizes.learned(CARD, size) for size in (SMALL, SMALL, LARGE)] == [True, False, False]
