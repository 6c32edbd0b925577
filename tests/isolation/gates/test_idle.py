"""A process that does not need the card sends IDLE, and WANT when it needs it again."""

from __future__ import annotations

import time

import pytest

from isolation.gates.stage import A_WHILE_S, Place, Program
from partage_isolation.wire.packets import What

pytestmark = pytest.mark.slow


def begun(one: Program) -> int:
    """The epoch in which the card is the program's alone."""
    one.say("launch()")
    one.place.broker.wait_for(What.WANT, 0)
    epoch = one.place.broker.sole()
    one.answer()
    return epoch


def test_a_program_that_launches_nothing_is_idle(one: Program) -> None:
    one.place.broker.wait_for(What.IDLE, begun(one))


def test_a_program_whose_kernel_runs_is_not_idle(one: Program) -> None:
    broker, epoch = one.place.broker, begun(one)
    broker.wait_for(What.IDLE, epoch)
    one.ask("launch(0, 2000)")
    before = len(broker.heard_of(What.IDLE, epoch))
    time.sleep(A_WHILE_S)
    assert len(broker.heard_of(What.IDLE, epoch)) == before
    broker.wait_for(What.IDLE, epoch, times=before + 1)


def test_going_on_after_idle_is_said(one: Program) -> None:
    broker, epoch = one.place.broker, begun(one)
    for turn in range(1, 4):
        broker.wait_for(What.IDLE, epoch, times=turn)
        one.ask("launch()")
        broker.wait_for(What.WANT, epoch, times=turn)


def test_a_program_that_goes_on_after_the_end_says_that_it_waits(one: Program) -> None:
    """Its earlier WANT belongs to the old time slice: if it counted for the new one, the program would wait forever."""
    begun(one)
    broker = one.place.broker
    epoch = broker.timeslice(seconds=0.7)
    broker.wait_for(What.IDLE, epoch)
    one.ask("launch(0, 900)")
    broker.wait_for(What.WANT, epoch)
    assert not broker.wait_for(What.DRAINED, epoch).timeslice.is_blocked
    before = len(broker.heard_of(What.WANT, epoch))
    one.say("launch()")
    broker.wait_for(What.WANT, epoch, times=before + 1)
    broker.sole()
    one.answer()


def test_nobody_is_idle_who_waits(one: Program) -> None:
    broker = one.place.broker
    one.say("launch()")
    broker.wait_for(What.WANT, 0)
    epoch = broker.close()
    broker.wait_for(What.WANT, epoch)
    time.sleep(A_WHILE_S)
    assert not broker.heard_of(What.IDLE)
    assert broker.wait_for(What.DRAINED, epoch).timeslice.is_blocked
    broker.sole()
    one.answer()


def test_a_thread_that_waits_until_more_may_be_in_flight_is_not_idle(place: Place) -> None:
    """Before a deadline one long kernel is in flight at a time, and the card is done before the thread looks again."""
    broker = place.broker
    broker.idle_us = 100
    with place.program() as one:
        begun(one)
        one.ask("launches(10, 0, 40)")
        for _ in range(5):
            one.ask("call('cuCtxSynchronize')")
            closed = broker.close()
            one.say("launches(3, 0, 40)")
            broker.wait_for(What.WANT, closed)
            begins_ns = time.monotonic_ns()
            epoch = broker.timeslice(seconds=0.06)
            broker.wait_for(What.DRAINED, epoch)
            broker.sole()
            one.answer()
            said = [packet.timeslice.at for packet in broker.heard_of(What.IDLE, epoch)]
            assert [at for at in said if at > begins_ns + 30_000_000] == []  # its first launch may be late


def test_a_lease_that_nobody_used_is_drained_at_its_end(one: Program) -> None:
    begun(one)
    epoch = one.place.broker.timeslice(seconds=0.05)
    assert not one.place.broker.wait_for(What.DRAINED, epoch).timeslice.is_blocked


def test_a_card_of_its_own_is_never_given_back(one: Program) -> None:
    begun(one)
    epoch = one.place.broker.free()
    one.ask("launches(10)")
    time.sleep(A_WHILE_S)
    assert not one.place.broker.heard_of(What.IDLE, epoch)
    assert not one.place.broker.heard_of(What.DRAINED, epoch)
