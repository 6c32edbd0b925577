"""Containers with several cards, and gangs of pods."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.line import LineState
from partage_plugins.api.names import CardId, Namespace
from partage_plugins.api.pods import Gang
from support.lease_simulation import Case, Container, Figures, run
from support.lease_simulation.workloads import US, flood, mixed, training
from unit.isolation.leasing.desk import CARD, OTHER, A, B, C, Desk

CLOSED, TIMESLICE, SOLE, FREE = LineState


def gang_of_a(*, b_on: CardId = CARD, c_on: CardId = OTHER) -> Desk:
    """A has two cards; B and C have one each."""
    desk = Desk()
    for card in (CARD, OTHER):
        desk.put(A, share=500, card=card)
        desk.join(A, card=card)
    for key, card in ((B, b_on), (C, c_on)):
        desk.put(key, share=500, card=card)
        desk.join(key, card=card)
    return desk


def both(desk: Desk, key: BudgetKey = A) -> tuple[LineState, LineState]:
    return desk.state(key, CARD), desk.state(key, OTHER)


def running_gang() -> Desk:
    """A has both cards for 20 ms; B and C wait."""
    desk = gang_of_a()
    desk.want(B)
    desk.want(C, card=OTHER)
    desk.wait(12)
    for card in (CARD, OTHER):
        desk.want(A, card=card)
    desk.drain(B)
    desk.drain(C, card=OTHER)
    return desk


def test_it_gets_all_of_its_cards_or_none() -> None:
    desk = gang_of_a()
    desk.want(B)
    desk.want(C, card=OTHER)
    desk.wait(30)
    for card in (CARD, OTHER):
        desk.want(A, card=card)
    assert both(desk) == (CLOSED, CLOSED)
    desk.drain(B)
    assert both(desk) == (CLOSED, CLOSED)
    assert desk.state(B) is CLOSED
    desk.drain(C, card=OTHER)
    assert both(desk) == (TIMESLICE, TIMESLICE)
    assert desk.line(A, CARD).deadline == desk.line(A, OTHER).deadline


def test_its_cards_are_free_together() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD)
    assert desk.state(B) is CLOSED
    desk.drain(A, card=OTHER)
    assert (desk.state(B, CARD), desk.state(C, OTHER)) == (TIMESLICE, TIMESLICE)


def test_a_card_that_it_does_not_use_is_left_to_others() -> None:
    desk = gang_of_a()
    desk.want(C, card=OTHER)
    desk.want(A, card=CARD)
    assert (desk.state(A, CARD), desk.state(C, OTHER)) == (SOLE, SOLE)


def test_a_card_that_is_idle_is_given_up_alone() -> None:
    desk = running_gang()
    desk.idle(A, card=OTHER)
    desk.drain(A, card=OTHER, blocked=False)
    assert desk.state(A, CARD) is TIMESLICE
    assert desk.state(C, OTHER) is not CLOSED


def test_where_work_waits_for_launches_on_another_card_it_opens_once_more() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD, blocked=True)
    desk.wait(1.9)
    assert both(desk) == (TIMESLICE, TIMESLICE)
    assert desk.left_ms(A, CARD) <= 2
    desk.wait(2.1)
    desk.drain(A, card=CARD)
    desk.drain(A, card=OTHER)
    assert (desk.state(B, CARD), desk.state(C, OTHER)) == (TIMESLICE, TIMESLICE)
    assert desk.shares(A, OTHER).overlaps == 0


def test_but_only_once_and_then_nobody_waits_any_longer() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD, blocked=True)
    desk.wait(4.5)
    desk.drain(A, card=CARD, blocked=True)
    desk.wait(41)
    assert (desk.state(B, CARD), desk.state(C, OTHER)) == (TIMESLICE, TIMESLICE)
    assert desk.shares(A, OTHER).overlaps == 1


def test_where_no_thread_waits_nothing_is_opened_again() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD, blocked=False)
    desk.wait(3)
    assert both(desk) == (CLOSED, CLOSED)


def test_it_is_free_only_where_it_is_alone_on_all_its_cards() -> None:
    desk = gang_of_a()
    desk.leave(B)
    desk.want(A, card=CARD)
    assert desk.state(A, CARD) is SOLE
    desk.leave(C, card=OTHER)
    assert desk.state(A, CARD) is FREE


# ---- Gangs of pods ---------------------------------------------------------------------------------------------------


TRAIN = Gang(Namespace("team"), "train", 2)
D = BudgetKey("d")


def two_ranks(gang: Gang | None = TRAIN) -> Desk:
    """A and B are in a gang, each with a card of its own; C floods A's card and D B's."""
    desk = Desk()
    for key, card, its in ((A, CARD, gang), (B, OTHER, gang), (C, CARD, None), (D, OTHER, None)):
        desk.put(key, share=500, card=card, gang=its)
        desk.join(key, card=card)
    return desk


def ranks(desk: Desk) -> tuple[LineState, LineState]:
    return desk.state(A, CARD), desk.state(B, OTHER)


def running(desk: Desk) -> Desk:
    """C began on its card, D 7 ms later on the other; A and B wait, and C's turn ends first."""
    desk.want(C)
    desk.wait(7)
    desk.want(D, card=OTHER)
    for key, card in ((A, CARD), (B, OTHER)):
        desk.want(key, card=card)
    desk.wait(21)
    desk.drain(C)
    return desk


def test_they_get_their_cards_in_one_step() -> None:
    desk = running(two_ranks())
    assert ranks(desk) == (CLOSED, CLOSED)
    desk.wait(7)
    desk.drain(D, card=OTHER)
    assert ranks(desk) == (TIMESLICE, TIMESLICE)
    assert desk.line(A, CARD).deadline == desk.line(B, OTHER).deadline


def test_those_of_no_gang_or_of_another_do_not_wait_for_each_other() -> None:
    assert ranks(running(two_ranks(gang=None))) == (TIMESLICE, CLOSED)
    desk = two_ranks(gang=None)
    desk.arbiter.drop(B)
    desk.put(B, share=500, card=OTHER, gang=Gang(Namespace("team"), "train", 3))
    desk.join(B, card=OTHER)
    assert ranks(running(desk)) == (TIMESLICE, CLOSED)


def test_two_of_a_gang_on_one_card_take_turns() -> None:
    desk = Desk()
    for key in (A, B):
        desk.put(key, share=500, gang=TRAIN)
        desk.join(key)
        desk.want(key)
    desk.run(200, A, B)
    assert desk.shares(A).timeslices >= 3
    assert desk.shares(B).timeslices >= 3


def test_one_that_was_started_again_takes_the_place_of_the_one_before() -> None:
    desk = two_ranks()
    again = BudgetKey("a started again")
    desk.leave(A)
    desk.put(again, share=500, gang=TRAIN)
    desk.join(again)
    assert desk.arbiter.node.entries[again, CARD].group is desk.arbiter.node.entries[B, OTHER].group
    assert desk.arbiter.node.entries[A, CARD].group.keys == (A,)


def test_one_that_came_to_a_taken_card_comes_in_when_that_is_left() -> None:
    desk = two_ranks()
    late = BudgetKey("late")
    desk.put(late, share=100, gang=TRAIN)
    desk.join(late)
    entries = desk.arbiter.node.entries
    assert entries[late, CARD].group is not entries[B, OTHER].group
    desk.leave(A)
    assert entries[late, CARD].group is entries[B, OTHER].group


def test_whose_cards_change_to_one_that_is_taken_goes_on_alone() -> None:
    desk = running(two_ranks())
    desk.wait(7)
    desk.drain(D, card=OTHER)
    desk.put(A, share=500, card=OTHER, gang=TRAIN)
    entries = desk.arbiter.node.entries
    assert entries[A, CARD].group is entries[A, OTHER].group is not entries[B, OTHER].group
    desk.run(500, A, B, C, D)
    assert min(desk.shares(key, card).timeslices for key, card in ((A, CARD), (B, OTHER), (C, CARD), (D, OTHER))) >= 4


def test_one_that_is_dropped_leaves_the_others_as_they_are() -> None:
    desk = running(two_ranks())
    desk.arbiter.drop(A)
    desk.obey()
    desk.wait(30)
    desk.drain(D, card=OTHER)
    assert desk.state(B, OTHER) is TIMESLICE


def trained(*others: Container, knows_gangs: bool = True) -> Figures:
    """Two gang members with a card and a share of 0.3 each run spinning collectives; others always want their cards."""
    gang = tuple(Container(300, training(), cards=(card,), gang="train") for card in (0, 1))
    return run(Case((*gang, *others), lasts_ns=5 * SECOND, knows_gangs=knows_gangs))


ONE_AND_TWO = (
    Container(700, flood(MS)),
    Container(350, flood(MS), cards=(1,)),
    Container(350, flood(MS), cards=(1,)),
)


def test_their_collectives_spin_for_nobody() -> None:
    together, apart = trained(*ONE_AND_TWO), trained(*ONE_AND_TWO, knows_gangs=False)
    assert together.overlapped == 0
    assert together.shares == pytest.approx((0.3, 0.3, 0.7, 0.35, 0.35), abs=0.02)
    assert apart.overlapped > 0.5, "what this is for"


KERNELS = st.lists(st.sampled_from([10 * US, MS, 3 * MS, 8 * MS]), min_size=1, max_size=3)


@pytest.mark.extended("neighbours by chance; those that are chosen above are in every run")
@settings(max_examples=12, deadline=None)
@given(here=KERNELS, there=KERNELS, later_ms=st.integers(0, 40), parts=st.integers(1, 3))
def test_whoever_their_neighbours_are_everybody_has_his_share(
    here: list[int], there: list[int], later_ms: int, parts: int
) -> None:
    figures = trained(
        Container(700, mixed(*here)),
        *(Container(700 // parts, mixed(*there), cards=(1,), begins_ns=later_ms * MS) for _ in range(parts)),
    )
    assert figures.overlapped <= 0.02
    assert figures.shares[:3] == pytest.approx((0.3, 0.3, 0.7), abs=0.04)
    assert sum(figures.shares[3:]) == pytest.approx(0.7, abs=0.04)
