"""One card: who has it without a deadline, and until when."""

from __future__ import annotations

from partage_isolation.leases.line import LineState
from unit.isolation.leasing.desk import A, B, Desk

CLOSED, LEASE, SOLE, FREE = LineState


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
    assert desk.state(A) is LEASE
    assert 10 <= desk.left_ms(A) <= 20


def test_without_a_share_one_runs_while_nobody_else_wants_the_card() -> None:
    desk = Desk(a=0, b=1)
    desk.want(A)
    assert desk.state(A) is SOLE
    desk.want(B)
    desk.wait(5)
    desk.drain(A)
    assert desk.state(B) is LEASE
    turns = desk.shares(A).leases
    desk.run(6000, A, B)
    assert desk.shares(A).leases == turns


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
    assert (desk.state(A), desk.left_ms(A)) == (LEASE, 20.0)
