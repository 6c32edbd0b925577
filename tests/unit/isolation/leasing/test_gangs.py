"""Containers with several cards."""

from __future__ import annotations

from partage_isolation.leases.line import LineState
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId
from unit.isolation.leasing.desk import CARD, OTHER, A, B, C, Desk

CLOSED, LEASE, SOLE, FREE = LineState


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
    assert both(desk) == (LEASE, LEASE)
    assert desk.line(A, CARD).deadline == desk.line(A, OTHER).deadline


def test_its_cards_are_free_together() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD)
    assert desk.state(B) is CLOSED
    desk.drain(A, card=OTHER)
    assert (desk.state(B, CARD), desk.state(C, OTHER)) == (LEASE, LEASE)


def test_a_card_that_it_does_not_use_is_left_to_others() -> None:
    desk = gang_of_a()
    desk.want(C, card=OTHER)
    desk.want(A, card=CARD)
    assert (desk.state(A, CARD), desk.state(C, OTHER)) == (SOLE, SOLE)


def test_a_card_that_is_idle_is_given_up_alone() -> None:
    desk = running_gang()
    desk.idle(A, card=OTHER)
    desk.drain(A, card=OTHER, blocked=False)
    assert desk.state(A, CARD) is LEASE
    assert desk.state(C, OTHER) is not CLOSED


def test_where_work_waits_for_launches_on_another_card_it_opens_once_more() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD, blocked=True)
    desk.wait(1.9)
    assert both(desk) == (LEASE, LEASE)
    assert desk.left_ms(A, CARD) <= 2
    desk.wait(2.1)
    desk.drain(A, card=CARD)
    desk.drain(A, card=OTHER)
    assert (desk.state(B, CARD), desk.state(C, OTHER)) == (LEASE, LEASE)
    assert desk.shares(A, OTHER).overlaps == 0


def test_but_only_once_and_then_nobody_waits_any_longer() -> None:
    desk = running_gang()
    desk.wait(20.5)
    desk.drain(A, card=CARD, blocked=True)
    desk.wait(4.5)
    desk.drain(A, card=CARD, blocked=True)
    desk.wait(41)
    assert (desk.state(B, CARD), desk.state(C, OTHER)) == (LEASE, LEASE)
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
