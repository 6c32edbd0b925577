"""One card: who has it without a deadline, and how turns are given, extended, ended, charged and changed."""

from __future__ import annotations

import pytest

from partage_isolation.timeslices.arbiter import Arbiter
from partage_isolation.timeslices.line import LineState
from partage_isolation.timeslices.policies import by_name
from unit.isolation.leasing.desk import CARD, A, B, C, Desk

CLOSED, TIMESLICE, SOLE, FREE = LineState


def test_who_is_alone_is_free() -> None:
    desk = Desk(a=500)
    desk.want(A)
    assert desk.state(A) is FREE
    assert desk.arbiter.due is None


def test_freedom_ends_when_another_joins_and_returns_when_it_leaves() -> None:
    desk = Desk(a=500)
    desk.want(A)
    desk.put(B, share=500)
    assert desk.state(A) is FREE, "a container without a process changes nothing"
    desk.join(B)
    assert desk.state(A) is SOLE
    desk.leave(B)
    assert desk.state(A) is FREE


def test_nobody_with_a_ceiling_is_without_a_deadline() -> None:
    desk = Desk()
    desk.put(A, share=500, limit=500)
    desk.join(A)
    desk.want(A)
    assert desk.state(A) is TIMESLICE
    assert 10 <= desk.left_ms(A) <= 20


def test_without_a_share_one_runs_while_nobody_else_wants_the_card() -> None:
    desk = Desk(a=0, b=1)
    desk.want(A)
    assert desk.state(A) is SOLE
    desk.want(B)
    desk.wait(5)
    desk.drain(A)
    assert desk.state(B) is TIMESLICE
    turns = desk.shares(A).timeslices
    desk.run(6000, A, B)
    assert desk.shares(A).timeslices == turns


def test_without_metering_everybody_is_free() -> None:
    desk = Desk("free-run", a=500, b=500)
    assert (desk.state(A), desk.state(B)) == (FREE, FREE)
    desk.leave(A)
    assert desk.line(A).state is CLOSED


def test_who_owes_ends_no_turn_without_a_deadline_at_once() -> None:
    desk = Desk(a=900, b=100)
    desk.want(B)
    desk.wait(100)
    desk.want(A)
    desk.drain(B, blocked=False)
    desk.wait(25)
    assert desk.state(A) is SOLE
    desk.want(B)
    assert (desk.state(A), desk.left_ms(A)) == (TIMESLICE, 20.0)


# ---- Turns -----------------------------------------------------------------------------------------------------------


def held_by_a() -> Desk:
    """A has a turn of 20 ms, and B waits; A is in debt."""
    desk = Desk(a=500, b=500)
    desk.want(B)
    desk.wait(8)
    desk.want(A)
    desk.drain(B)
    desk.wait(1)
    return desk


def test_a_turn_has_a_deadline_from_when_somebody_else_wants_the_card() -> None:
    desk = Desk(a=500, b=500)
    desk.want(A)
    assert desk.state(A) is SOLE
    desk.wait(2)
    desk.want(B)
    assert (desk.state(A), desk.left_ms(A)) == (TIMESLICE, 3.0)


def test_after_its_shortest_time_a_turn_ends_at_once_for_who_is_behind() -> None:
    desk = Desk(a=500, b=500)
    desk.want(A)
    desk.wait(50)
    desk.want(B)
    assert (desk.state(A), desk.state(B)) == (CLOSED, CLOSED)
    assert desk.shares(A).revocations == 1
    desk.drain(A)
    assert desk.state(B) is TIMESLICE


def test_the_next_turn_begins_when_all_have_drained_and_not_before() -> None:
    desk = Desk(a=500, b=500)
    desk.join(A, "q")
    desk.want(A)
    desk.wait(50)
    desk.want(B)
    desk.drain(A, "q")
    assert desk.state(B) is CLOSED
    desk.drain(A, "p")
    assert desk.state(B) is TIMESLICE
    assert desk.shares(A).drains.count == 1


def test_who_has_just_had_his_turn_does_not_end_anothers() -> None:
    desk = held_by_a()
    desk.wait(17)
    desk.want(B)
    assert (desk.state(A), desk.state(B)) == (TIMESLICE, CLOSED)


def test_a_lease_that_would_go_to_its_holder_again_is_lengthened() -> None:
    desk = Desk(a=900, b=100)
    desk.want(A)
    desk.want(B)
    desk.wait(5)
    desk.drain(A)
    assert desk.state(B) is TIMESLICE
    desk.wait(20)
    desk.drain(B)
    epoch = desk.line(A).epoch
    desk.wait(30)
    assert desk.state(A) is TIMESLICE
    assert desk.line(A).epoch != epoch


def test_but_only_a_few_times_in_a_row_since_a_stopped_process_cannot_say_that_it_needs_nothing() -> None:
    desk = Desk(a=999, b=1)
    desk.want(A)
    desk.want(B)
    desk.wait(5)
    desk.drain(A)
    desk.wait(20)
    desk.drain(B)
    assert desk.state(A) is TIMESLICE
    desk.wait(120)
    assert desk.state(A) is CLOSED


def test_a_lease_that_ran_out_is_not_written_again() -> None:
    desk = held_by_a()
    epoch, writes = desk.line(A).epoch, len([write for write in desk.writes if write.key == A])
    desk.wait(25)
    desk.drain(A)
    assert desk.line(A).epoch == epoch
    assert len([write for write in desk.writes if write.key == A]) == writes
    assert desk.state(B) is TIMESLICE


def test_a_turn_that_its_holder_ends_himself_is_over() -> None:
    desk = held_by_a()
    desk.wait(12)
    desk.drain(A)
    assert (desk.state(A), desk.state(B)) == (CLOSED, TIMESLICE)


# ---- Idle containers -------------------------------------------------------------------------------------------------


def test_who_is_idle_gives_the_card_up_and_pays_no_more() -> None:
    desk = Desk(a=500, b=500)
    desk.want(A)
    desk.wait(100)
    desk.idle(A)
    desk.drain(A, blocked=False)
    desk.want(B)
    assert desk.state(B) is SOLE
    desk.wait(850)
    assert desk.shares(A).got.s1 == pytest.approx(1 / 9, abs=0.01)
    assert desk.shares(B).got.s1 == pytest.approx(8 / 9, abs=0.01)


def test_a_process_that_was_idle_may_have_begun_again_so_it_is_asked_once_more() -> None:
    desk = Desk(a=500, b=500)
    desk.join(A, "q")
    desk.want(A)
    desk.idle(A, "p")
    assert desk.state(A) is SOLE
    desk.idle(A, "q")
    desk.want(B)
    assert (desk.state(A), desk.state(B)) == (CLOSED, CLOSED)
    desk.drain(A, "p", blocked=False)
    assert desk.state(B) is CLOSED
    desk.drain(A, "q", blocked=False)
    assert desk.state(B) is not CLOSED


def test_who_says_idle_while_another_process_works_does_not_end_the_turn() -> None:
    desk = Desk(a=500)
    desk.put(B, share=500)
    desk.join(B)
    desk.join(A, "q")
    desk.want(A)
    desk.idle(A, "q")
    desk.wait(1000)
    assert desk.state(A) is SOLE


@pytest.mark.parametrize("state", [SOLE, TIMESLICE])
def test_a_process_that_was_idle_and_wants_to_go_on_is_not_idle_any_more(state: LineState) -> None:
    desk = Desk(a=500, b=500)
    desk.join(A, "q")
    desk.want(A)
    if state is TIMESLICE:
        desk.want(B)
    desk.idle(A, "p")
    desk.want(A, "p")
    desk.idle(A, "q")
    assert (desk.state(A), desk.state(B)) == (state, CLOSED)


def first_is_between_two_launches() -> Desk:
    """A, which is still first, has just ended a turn; B waits."""
    desk = Desk(a=900, b=100)
    desk.want(B)
    desk.wait(20)
    desk.want(A)
    desk.drain(B)
    desk.wait(101)
    desk.drain(A, blocked=False)
    return desk


def test_the_card_is_kept_for_a_moment_for_who_is_first_and_was_not_idle() -> None:
    desk = first_is_between_two_launches()
    assert desk.state(B) is CLOSED
    desk.want(A)
    assert desk.state(A) is TIMESLICE


def test_but_not_for_longer() -> None:
    desk = first_is_between_two_launches()
    desk.wait(0.4)
    assert desk.state(B) is TIMESLICE


# ---- Changes ---------------------------------------------------------------------------------------------------------


def test_a_live_change_of_share_counts_from_now_on() -> None:
    desk = Desk(a=500, b=500)
    desk.put(A, share=100)
    for key in (A, B):
        desk.want(key)
    desk.run(1200, A, B)
    assert desk.shares(A).got.s1 == pytest.approx(1 / 6, abs=0.03)


def test_a_ceiling_that_is_lowered_ends_a_turn_without_a_deadline() -> None:
    desk = Desk(a=500)
    desk.want(A)
    desk.put(A, share=100, limit=200)
    desk.wait(1)
    assert desk.state(A) is TIMESLICE


def test_a_ceiling_that_is_lifted_gives_no_credit_for_the_time_below_it() -> None:
    desk = Desk(b=100)
    desk.put(A, share=100, limit=200)
    desk.join(A)
    desk.want(A)
    desk.want(B)
    desk.run(5000, A, B)
    entries = desk.arbiter.node.entries
    behind = entries[B, CARD].account.virtual - entries[A, CARD].account.virtual
    assert behind < 1_000_000_000


def test_a_container_that_ends_frees_its_card_and_nothing_is_written_for_it() -> None:
    desk = Desk(a=500, b=500)
    desk.want(A)
    desk.want(B)
    desk.arbiter.drop(A)
    writes = len(desk.writes)
    desk.wait(0)
    assert desk.state(B) is FREE
    assert all(write.key == B for write in desk.writes[writes:])
    desk.arbiter.left(A, CARD, (A, "p"), desk.now)


def test_who_alone_waited_and_dies_is_not_waited_for() -> None:
    desk = Desk(a=500, b=500, c=500)
    desk.join(B, "q")
    desk.want(A)
    desk.want(B)
    desk.leave(B)
    desk.want(C)
    desk.wait(5)
    desk.drain(A)
    assert (desk.state(B), desk.state(C)) == (CLOSED, TIMESLICE)


def test_a_line_begins_under_the_epoch_that_was_asked_for() -> None:
    desk = Desk()
    desk.arbiter = Arbiter(policy=lambda _: by_name("caps"), first_epoch=lambda _key, _card: 77)
    desk.put(A, share=1)
    assert desk.line(A).epoch == 77
