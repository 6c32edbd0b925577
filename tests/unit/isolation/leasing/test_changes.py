"""One card: shares and ceilings change, containers end, processes die."""

from __future__ import annotations

import pytest

from partage_isolation.leases.arbiter import Arbiter
from partage_isolation.leases.line import LineState
from partage_isolation.leases.policies import by_name
from unit.isolation.leasing.desk import CARD, A, B, C, Desk

CLOSED, LEASE, SOLE, FREE = LineState


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
    assert desk.state(A) is LEASE


def test_a_ceiling_that_is_lifted_gives_no_credit_for_the_time_below_it() -> None:
    desk = Desk(b=100)
    desk.put(A, share=100, limit=200)
    desk.join(A)
    desk.want(A)
    desk.want(B)
    desk.run(5000, A, B)
    seats = desk.arbiter.node.seats
    behind = seats[B, CARD].account.virtual - seats[A, CARD].account.virtual
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
    assert (desk.state(B), desk.state(C)) == (CLOSED, LEASE)


def test_a_line_begins_under_the_epoch_that_was_asked_for() -> None:
    desk = Desk()
    desk.arbiter = Arbiter(policy=lambda _: by_name("caps"), first_epoch=lambda _key, _card: 77)
    desk.put(A, share=1)
    assert desk.line(A).epoch == 77
