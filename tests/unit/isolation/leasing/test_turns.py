"""One card: how turns are given, lengthened, ended and charged."""

from __future__ import annotations

from partage_isolation.leases.line import LineState
from unit.isolation.leasing.desk import A, B, Desk

CLOSED, LEASE, SOLE, FREE = LineState


def held_by_a() -> Desk:
    """A has a turn of 20 ms, and B waits; A owes."""
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
    assert (desk.state(A), desk.left_ms(A)) == (LEASE, 3.0)


def test_after_its_shortest_time_a_turn_ends_at_once_for_who_is_behind() -> None:
    desk = Desk(a=500, b=500)
    desk.want(A)
    desk.wait(50)
    desk.want(B)
    assert (desk.state(A), desk.state(B)) == (CLOSED, CLOSED)
    assert desk.shares(A).revocations == 1
    desk.drain(A)
    assert desk.state(B) is LEASE


def test_the_next_turn_begins_when_all_have_drained_and_not_before() -> None:
    desk = Desk(a=500, b=500)
    desk.join(A, "q")
    desk.want(A)
    desk.wait(50)
    desk.want(B)
    desk.drain(A, "q")
    assert desk.state(B) is CLOSED
    desk.drain(A, "p")
    assert desk.state(B) is LEASE
    assert desk.shares(A).drains.count == 1


def test_who_has_just_had_his_turn_does_not_end_anothers() -> None:
    desk = held_by_a()
    desk.wait(17)
    desk.want(B)
    assert (desk.state(A), desk.state(B)) == (LEASE, CLOSED)


def test_a_lease_that_would_go_to_its_holder_again_is_lengthened() -> None:
    desk = Desk(a=900, b=100)
    desk.want(A)
    desk.want(B)
    desk.wait(5)
    desk.drain(A)
    assert desk.state(B) is LEASE
    desk.wait(20)
    desk.drain(B)
    epoch = desk.line(A).epoch
    desk.wait(30)
    assert desk.state(A) is LEASE
    assert desk.line(A).epoch != epoch


def test_but_only_a_few_times_in_a_row_since_a_stopped_process_cannot_say_that_it_needs_nothing() -> None:
    desk = Desk(a=999, b=1)
    desk.want(A)
    desk.want(B)
    desk.wait(5)
    desk.drain(A)
    desk.wait(20)
    desk.drain(B)
    assert desk.state(A) is LEASE
    desk.wait(120)
    assert desk.state(A) is CLOSED


def test_a_lease_that_ran_out_is_not_written_again() -> None:
    desk = held_by_a()
    epoch, writes = desk.line(A).epoch, len([write for write in desk.writes if write.key == A])
    desk.wait(25)
    desk.drain(A)
    assert desk.line(A).epoch == epoch
    assert len([write for write in desk.writes if write.key == A]) == writes
    assert desk.state(B) is LEASE


def test_a_turn_that_its_holder_ends_himself_is_over() -> None:
    desk = held_by_a()
    desk.wait(12)
    desk.drain(A)
    assert (desk.state(A), desk.state(B)) == (CLOSED, LEASE)
