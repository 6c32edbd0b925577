"""One card: who is idle gives it up, and may take that back."""

from __future__ import annotations

import pytest

from partage_isolation.leases.line import LineState
from unit.isolation.leasing.desk import A, B, Desk

CLOSED, LEASE, SOLE, FREE = LineState


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


@pytest.mark.parametrize("state", [SOLE, LEASE])
def test_a_process_that_was_idle_and_wants_to_go_on_is_not_idle_any_more(state: LineState) -> None:
    desk = Desk(a=500, b=500)
    desk.join(A, "q")
    desk.want(A)
    if state is LEASE:
        desk.want(B)
    desk.idle(A, "p")
    desk.want(A, "p")
    desk.idle(A, "q")
    assert (desk.state(A), desk.state(B)) == (state, CLOSED)


def first_is_between_two_launches() -> Desk:
    """A, who is still first, has just ended a turn; B waits."""
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
    assert desk.state(A) is LEASE


def test_but_not_for_longer() -> None:
    desk = first_is_between_two_launches()
    desk.wait(0.4)
    assert desk.state(B) is LEASE
