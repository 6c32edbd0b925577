"""What the ledger lends, refuses and defers, one rule at a time."""

from __future__ import annotations

import pytest

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import MOST_PROCESSES, Ledger
from partage_isolation.ledger.pieces import Shared
from partage_isolation.ledger.quota_accounting import Defer, Lent, NoRoom, Patience, Refused, lenders
from unit.isolation.ledger.keeping import CARD, KEY, MIB, Kept, book, charged, ledger_of, process_of, restarted, sample

GIB = 1 << 30


def lend(ledger: Ledger, process: Process, lent: int, *, used: int = 0) -> object:
    return ledger.accounting.lend(process, 0, Amounts(used, lent))


def test_room_is_lent_with_a_little_credit() -> None:
    ledger = ledger_of(GIB)
    assert lend(ledger, process_of(ledger), 100 * MIB) == Lent(132 * MIB)


def test_near_the_limit_there_is_no_credit() -> None:
    ledger = ledger_of(GIB)
    assert lend(ledger, process_of(ledger), GIB - 20 * MIB) == Lent(GIB - 20 * MIB)


def test_all_of_the_limit_can_be_lent_and_no_byte_more() -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    assert lend(ledger, process, GIB) == Lent(GIB)
    assert lend(ledger, process, GIB + 1) == Refused(GIB)
    assert charged(ledger) == GIB


def test_a_refusal_where_nobody_could_give_anything_back_is_at_once() -> None:
    ledger = ledger_of(GIB)
    assert lend(ledger, process_of(ledger), 2 * GIB) == Refused(0)
    assert ledger.containers[KEY].refused[0] == 1


def test_a_call_that_asks_again_before_it_gives_up_is_refused_once() -> None:
    ledger = ledger_of(GIB, context=2 * GIB)
    process, refused = process_of(ledger), ledger.containers[KEY].refused
    for ask in (ledger.accounting.lend, ledger.accounting.context):
        before = refused[0]
        for again in (False, True, True):
            assert ask(process, 0, Amounts(0, 2 * GIB), again=again) == Refused(0)
        assert refused[0] == before + 1


def test_credit_of_siblings_is_recalled_before_anything_is_refused() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    lend(ledger, one, 100 * MIB)
    assert isinstance(lend(ledger, other, GIB - 110 * MIB), Defer)
    assert list(lenders(ledger.containers[KEY], 0, other)) == [one]


def test_a_sibling_may_have_more_unused_than_it_was_granted_as_credit() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    lend(ledger, one, 600 * MIB)
    assert isinstance(lend(ledger, other, 900 * MIB), Defer)


def test_while_somebody_waits_for_room_no_credit_is_lent() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    ledger.containers[KEY].waiting[other] = 0
    assert lend(ledger, one, 100 * MIB) == Lent(100 * MIB)


def test_who_waits_itself_lends_to_others_where_its_library_can() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    lend(ledger, one, 100 * MIB)
    ledger.containers[KEY].waiting[one] = 0
    assert not list(lenders(ledger.containers[KEY], 0, other))
    one.is_prompt = True
    assert list(lenders(ledger.containers[KEY], 0, other)) == [one]


def test_a_question_that_outlives_its_container_finds_no_room() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    lend(ledger, one, GIB)
    assert isinstance(lend(ledger, other, MIB), Defer)
    ledger.forget(KEY)
    assert ledger.accounting.lend(other, 0, Amounts(0, MIB), Patience.PROOF) == NoRoom()


def test_what_a_question_said_when_it_was_asked_is_not_told_again() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    lend(ledger, one, 500 * MIB)
    lend(ledger, other, 400 * MIB)
    assert isinstance(lend(ledger, other, 900 * MIB, used=400 * MIB), Defer)
    ledger.accounting.returned(other, 0, Amounts(100 * MIB, 100 * MIB))
    assert isinstance(ledger.accounting.lend(other, 0, Amounts(400 * MIB, 900 * MIB), Patience.PROOF), Defer | Refused)
    assert other.accounts[0].used == 100 * MIB


def test_a_silent_sibling_is_not_asked_until_it_speaks() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    lend(ledger, one, 100 * MIB)
    one.is_silent = True
    assert isinstance(lend(ledger, other, GIB - 110 * MIB), Defer)
    assert not list(lenders(ledger.containers[KEY], 0, other))
    ledger.accounting.told(one, 0, Amounts(100 * MIB, 132 * MIB))
    assert list(lenders(ledger.containers[KEY], 0, other)) == [one]


def test_overhead_rises_at_once_and_falls_after_three_equal_samples() -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    lend(ledger, process, 100 * MIB)
    exact = {process.id: 100 * MIB}
    sample(ledger, {10: 350 * MIB}, exact)
    assert process.accounts[0].overhead == 250 * MIB
    for expected in (250, 250, 200):
        sample(ledger, {10: 300 * MIB}, exact)
        assert process.accounts[0].overhead == expected * MIB


def test_a_process_that_does_not_report_can_only_be_charged_more() -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    lend(ledger, process, 100 * MIB)
    lent = process.accounts[0].lent
    sample(ledger, {10: lent + 50 * MIB})
    assert process.accounts[0].overhead == 50 * MIB
    sample(ledger, {10: 10 * MIB})
    assert process.accounts[0].overhead == 50 * MIB


def test_a_context_is_charged_before_it_is_made_and_measured_after() -> None:
    ledger = ledger_of(GIB, context=300 * MIB)
    process = process_of(ledger)
    assert isinstance(ledger.accounting.context(process, 0, Amounts(0, 0)), Lent)
    assert charged(ledger) == 300 * MIB
    ledger.accounting.context_ended(process, 0, made=True)
    assert sample(ledger, {10: 250 * MIB}, {process.id: 0}) == (250 * MIB,)
    assert charged(ledger) == 250 * MIB


def test_a_second_context_is_charged_too_before_the_first_one_is_measured() -> None:
    ledger = ledger_of(GIB, context=300 * MIB)
    process = process_of(ledger)
    for count in (1, 2, 3):
        for _ in range(2):  # a retry after a lost answer
            assert isinstance(ledger.accounting.context(process, 0, Amounts(0, 0)), Lent)
        ledger.accounting.context_ended(process, 0, made=True)
        assert charged(ledger) == count * 300 * MIB
    assert isinstance(ledger.accounting.context(process, 0, Amounts(0, 0)), Defer)  # until a sample shows the contexts
    assert sample(ledger, {10: 750 * MIB}, {process.id: 0}) == ()
    assert charged(ledger) == 750 * MIB


def test_a_context_that_has_gone_takes_no_room_while_the_next_one_is_made() -> None:
    ledger = ledger_of(GIB, context=300 * MIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    ledger.accounting.context(one, 0, Amounts(0, 0))
    ledger.accounting.context_ended(one, 0, made=True)
    ledger.accounting.context(one, 0, Amounts(0, 0))
    assert isinstance(lend(ledger, other, 600 * MIB), Defer)
    sample(ledger, {10: 0}, {one.id: 0})
    assert charged(ledger) == 300 * MIB
    assert isinstance(lend(ledger, other, 600 * MIB), Lent)


def test_a_context_that_does_not_fit_is_refused() -> None:
    ledger = ledger_of(256 * MIB, context=300 * MIB)
    assert isinstance(ledger.accounting.context(process_of(ledger), 0, Amounts(0, 0)), Refused)


def test_where_no_context_was_seen_yet_one_may_be_made_even_in_a_small_container() -> None:
    ledger = ledger_of(256 * MIB)
    assert isinstance(ledger.accounting.context(process_of(ledger), 0, Amounts(0, 0)), Lent)
    assert charged(ledger) == 128 * MIB


def test_before_any_context_was_measured_the_next_ones_take_what_is_charged_for_those_that_are_there() -> None:
    ledger = ledger_of(GIB)
    one, other = process_of(ledger, 10), process_of(ledger, 11)
    ledger.accounting.context(one, 0, Amounts(0, 0))
    ledger.accounting.context_ended(one, 0, made=True)
    assert sample(ledger, {10: 64 * MIB}) == ()  # a busy process: its context is no larger than that
    lend(ledger, one, 900 * MIB)
    assert isinstance(
        ledger.accounting.context(other, 0, Amounts(0, 0)), Defer
    )  # the first one may turn out to be smaller
    assert isinstance(ledger.accounting.context(other, 0, Amounts(0, 0), patience=Patience.NONE), Refused)
    ledger.accounting.returned(one, 0, Amounts(800 * MIB, 800 * MIB, 1))
    sample(ledger, {10: 864 * MIB})
    assert isinstance(ledger.accounting.context(other, 0, Amounts(0, 0)), Lent)
    assert charged(ledger) == (800 + 2 * 64) * MIB


def test_contexts_count_only_where_they_shall() -> None:
    ledger = ledger_of(GIB, context=300 * MIB, in_limit=False)
    process = process_of(ledger)
    ledger.accounting.context(process, 0, Amounts(0, 0))
    assert lend(ledger, process, GIB) == Lent(GIB)
    assert ledger.containers[KEY].fixed(0) == 300 * MIB


def test_a_context_that_failed_is_free_once_a_sample_agrees() -> None:
    ledger = ledger_of(GIB, context=300 * MIB)
    process = process_of(ledger)
    ledger.accounting.context(process, 0, Amounts(0, 0))
    ledger.accounting.context_ended(process, 0, made=False)
    assert charged(ledger) == 300 * MIB
    sample(ledger, {})
    assert charged(ledger) == 0


def test_who_outlives_a_forgotten_container_is_none_of_the_next_one_of_its_key() -> None:
    ledger = ledger_of(GIB)
    old = process_of(ledger)
    ledger.forget(KEY)
    ledger.put(KEY, (book(GIB),))
    process = process_of(ledger)
    lend(ledger, process, 100 * MIB)
    before = charged(ledger)
    ledger.lives.died(old, 1)
    assert (charged(ledger), list(ledger.containers[KEY].processes.values())) == (before, [process])


def test_a_token_is_good_only_for_its_process_and_its_life() -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    assert ledger.lives.resume(KEY, (10, 1), process.token) is process
    assert ledger.lives.resume(KEY, (11, 1), process.token) is None
    assert ledger.lives.resume(KEY, (10, 2), process.token) is None
    assert ledger.lives.resume(KEY, (10, 1), bytes(16)) is None
    lend(ledger, process, 1)
    ledger.lives.died(process, 1)
    assert ledger.lives.resume(KEY, (10, 1), process.token) is None


def test_a_container_has_room_for_so_many_processes_and_no_more() -> None:
    ledger = ledger_of(GIB)
    for pid in range(1, MOST_PROCESSES + 1):
        process_of(ledger, pid)
    assert ledger.lives.begin(KEY, (9999, 1), b"x" * 16) is None


def test_a_full_file_is_an_answer_and_no_exception() -> None:
    ledger = ledger_of(GIB, Kept(room=1))
    process = process_of(ledger)
    assert lend(ledger, process, MIB) == NoRoom()
    assert ledger.lives.begin(KEY, (11, 1), b"x" * 16) is None


def test_a_lower_limit_takes_nothing_away_and_gives_nothing_until_below() -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    lend(ledger, process, 800 * MIB)
    ledger.put(KEY, (book(GIB, lowered=500 * MIB),))
    assert lend(ledger, process, 900 * MIB) == Refused(process.accounts[0].lent)
    assert lend(ledger, process, 800 * MIB) == Lent(process.accounts[0].lent)
    ledger.accounting.returned(process, 0, Amounts(100 * MIB, 100 * MIB))
    sample(ledger, {10: 100 * MIB})
    assert lend(ledger, process, 200 * MIB) == Lent(200 * MIB + 18 * MIB)


def test_after_a_restart_everything_is_charged_as_before_and_confirmed_by_token() -> None:
    kept = Kept()
    ledger = ledger_of(GIB, kept, context=300 * MIB)
    process = process_of(ledger)
    ledger.accounting.context(process, 0, Amounts(0, 0))
    lend(ledger, process, 400 * MIB)
    ledger.accounting.returned(process, 0, Amounts(100 * MIB, 100 * MIB))
    again = restarted(kept, GIB)
    assert charged(again) == charged(ledger)
    (found,) = again.containers[KEY].processes.values()
    assert found.state.name == "UNCONFIRMED"
    assert again.lives.resume(KEY, process.id, process.token) is found
    assert found.state.name == "LIVE"


def test_while_lost_books_are_found_out_growth_waits_and_what_is_held_is_lent() -> None:
    ledger = ledger_of(GIB)
    ledger.accounting.is_settling = True
    process = process_of(ledger)
    assert ledger.accounting.told(process, 0, Amounts(600 * MIB, 600 * MIB))
    assert isinstance(lend(ledger, process, 700 * MIB, used=600 * MIB), Defer)
    sample(ledger, {10: 600 * MIB})
    assert process.accounts[0].lent == 600 * MIB
    assert lend(ledger, process, 600 * MIB, used=600 * MIB) == Lent(600 * MIB)


def test_a_claim_beyond_what_the_card_shows_is_not_believed() -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    ledger.accounting.told(process, 0, Amounts(900 * MIB, 900 * MIB))
    sample(ledger, {10: 100 * MIB})
    assert process.accounts[0].lent == 100 * MIB


def test_a_process_that_never_came_is_charged_for_what_the_card_shows() -> None:
    ledger = ledger_of(GIB)
    stranger = ledger.lives.found(KEY, (77, 5), b"s" * 16, card=0, amount=300 * MIB)
    assert stranger is not None
    assert charged(ledger) == 300 * MIB
    rules.apply(ledger, rules.begin(ledger, CARD, 10), rules.Shown({77: 400 * MIB}, {77: 5}))
    assert charged(ledger) == 400 * MIB
    assert ledger.lives.resume(KEY, (77, 5), b"s" * 16) is None


@pytest.mark.parametrize("amount", [2**63, 2**64 - 1])
def test_absurd_amounts_are_refused(amount: int) -> None:
    ledger = ledger_of(GIB)
    process = process_of(ledger)
    assert lend(ledger, process, amount, used=amount) == Refused(0)
    ledger.accounting.returned(process, 0, Amounts(amount, amount, 2**32 - 1, 2**32 - 1))
    assert ledger.sharing.exported(process, 0, Shared(1, amount, amount, amount))
    assert ledger.sharing.opened(process, 0, Shared(amount, amount, amount)) is None
    ledger.sharing.left(process, 0, Shared(1, amount, amount, amount))
    assert charged(ledger) == 0
