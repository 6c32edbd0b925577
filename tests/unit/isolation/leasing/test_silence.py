"""Processes that do not report in time that their work is done."""

from __future__ import annotations

import pytest

from partage_isolation.timeslices.durations import MS
from partage_isolation.timeslices.line import LineState
from unit.isolation.leasing.desk import CARD, A, B, Desk

CLOSED, TIMESLICE, SOLE, FREE = LineState


def waited_for_in_vain() -> Desk:
    """A never reported that it was done; B has been running since."""
    desk = Desk(a=500, b=500)
    desk.want(A)
    desk.wait(50)
    desk.want(B)
    desk.wait(40)
    return desk


def until_a_runs(desk: Desk) -> None:
    while desk.state(A) is not TIMESLICE:
        desk.run(1, B)


def virtual_ms(desk: Desk) -> float:
    desk.shares(A)
    return desk.arbiter.node.entries[A, CARD].account.virtual / MS


def test_nobody_waits_for_it_longer_than_twice_what_its_work_is_expected_to_need() -> None:
    desk = waited_for_in_vain()
    assert desk.state(B) is not CLOSED
    assert desk.shares(A).overlaps == 1
    assert [silent.key for silent in desk.arbiter.silent()] == [A]


def test_it_pays_half_of_what_it_may_overlap() -> None:
    desk = waited_for_in_vain()
    before = virtual_ms(desk)
    desk.wait(100)
    assert virtual_ms(desk) - before == pytest.approx(100, abs=1)  # 50 ms at half a card


def test_it_pays_by_its_processes_as_the_card_divides_time() -> None:
    desk = Desk(a=500, b=500)
    for name in "pqr":
        desk.join(A, name)
        desk.want(A, name)
    desk.wait(50)
    desk.want(B)
    desk.wait(40)
    before = virtual_ms(desk)
    desk.wait(100)
    assert virtual_ms(desk) - before == pytest.approx(150, abs=1)  # three of four: 75 ms at half a card


def test_whoever_holds_the_card_pays_for_those_of_its_processes_that_are_not_idle() -> None:
    desk = waited_for_in_vain()
    desk.join(B, "q")
    before = virtual_ms(desk)
    desk.wait(90)
    assert virtual_ms(desk) - before == pytest.approx(60, abs=1)  # one of three
    desk.idle(B, "q")
    before = virtual_ms(desk)
    desk.wait(90)
    assert virtual_ms(desk) - before == pytest.approx(90, abs=1)


def test_work_that_was_long_lately_is_waited_for_up_to_eight_quanta() -> None:
    desk = waited_for_in_vain()
    desk.wait(1000)
    desk.drain(A)  # it needed a second
    until_a_runs(desk)
    while desk.state(A) is TIMESLICE:
        desk.wait(1)
    desk.wait(155)
    assert desk.state(B) is CLOSED
    desk.wait(10)
    assert desk.state(B) is not CLOSED


def test_where_it_is_stopped_it_pays_nothing() -> None:
    desk = waited_for_in_vain()
    before = virtual_ms(desk)
    desk.stopped(A)
    desk.wait(100)
    assert virtual_ms(desk) == before
    assert not desk.arbiter.silent()


def test_what_it_paid_after_its_work_had_ended_comes_back() -> None:
    desk = waited_for_in_vain()
    done = desk.now
    before = virtual_ms(desk)
    desk.wait(1000)
    assert virtual_ms(desk) > before + 900
    desk.drain(A, blocked=False, at=done)
    assert virtual_ms(desk) == pytest.approx(before, abs=50)
    assert not desk.arbiter.silent()


def test_but_saying_so_falsely_puts_it_ahead_of_nobody() -> None:
    desk = waited_for_in_vain()
    desk.wait(1000)
    desk.drain(A, at=0)
    entries = desk.arbiter.node.entries
    assert entries[A, CARD].account.virtual >= min(entries[B, CARD].account.virtual, entries[A, CARD].card.clocks[1])


def test_its_next_turn_is_not_waited_for_either() -> None:
    desk = waited_for_in_vain()
    desk.stopped(A)
    desk.join(A, "q")
    desk.want(A, "q")
    until_a_runs(desk)
    desk.wait(max(0.0, desk.left_ms(A)) + 0.1)
    assert (desk.state(A), desk.state(B)) == (CLOSED, CLOSED)
    desk.drain(A, "q")
    assert TIMESLICE in (desk.state(A), desk.state(B))


def test_once_it_speaks_it_is_waited_for_again() -> None:
    desk = waited_for_in_vain()
    desk.drain(A)
    until_a_runs(desk)
    while desk.state(A) is TIMESLICE:
        desk.wait(1)
    assert desk.state(B) is CLOSED
    desk.drain(A)
    assert TIMESLICE in (desk.state(A), desk.state(B))
