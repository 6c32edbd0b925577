"""A broker that is down: time slices run out, then the configured policy applies; when it returns, so does the gate."""

from __future__ import annotations

import pytest

from isolation.gates.stage import A_WHILE_S, NOT_INITIALIZED, Place, Program
from partage_isolation.wire.packets import Loss, What
from support.lender import Granter

pytestmark = pytest.mark.slow


def joined(one: Program) -> Granter:
    """Connect to a broker that frees the card after a tenth of a second.

    A program that was idle before has sent WANT again.
    """
    broker = one.place.broker
    broker.loss_after_s = 0.1
    broker.generous = True
    one.ask("launch()")
    broker.generous = False
    broker.close()
    return broker


def test_launches_go_free_when_it_stays_away(one: Program) -> None:
    broker = joined(one)
    one.say("launch()")
    assert not one.has_answered(within_s=A_WHILE_S)
    broker.stop()
    one.answer()
    one.ask("launches(500, stream(), 0.01)")
    one.ask("synchronize()")


def test_launches_stay_closed_if_that_is_configured(one: Program) -> None:
    one.place.broker.loss = Loss.CLOSED
    broker = joined(one)
    broker.stop()
    assert one.error("launch()") == NOT_INITIALIZED
    broker.start()
    broker.wait(lambda: len(broker.joined) == 2, "it joins again")
    broker.sole()
    one.ask("launch()")


def test_a_card_that_was_open_stays_open(one: Program) -> None:
    broker = joined(one)
    broker.sole()
    one.ask("launch()")
    broker.stop()
    one.ask("launches(50)")


@pytest.mark.parametrize("forgets", [False, True])
def test_the_gate_is_back_with_the_broker(one: Program, forgets: bool) -> None:  # noqa: FBT001
    broker = joined(one)
    broker.stop()
    one.ask("launch()")
    if forgets:
        broker.forget()
    broker.new_page()
    broker.start()
    broker.wait(lambda: len(broker.joined) == 2, "it joins again")
    one.ask("time.sleep(0.3)")
    one.say("launch()")
    broker.wait_for(What.WANT, 1001)
    assert not one.has_answered(within_s=A_WHILE_S)
    broker.sole()
    one.answer()


def test_who_waits_while_brokers_change_is_served_by_the_next(one: Program) -> None:
    one.place.broker.loss = Loss.CLOSED
    broker = joined(one)
    one.say("launch()")
    broker.wait_for(What.WANT, broker.epoch())
    broker.stop()
    broker.new_page()
    broker.start()
    broker.wait_for(What.WANT, 1001)
    broker.sole()
    one.answer()


def test_who_comes_back_finds_little_in_flight(one: Program) -> None:
    """The card was the program's own, and its launches so short that they were not counted."""
    broker = joined(one)
    broker.free()
    one.ask("s = stream(); launches(20000, s, 0.001)")
    broker.stop()
    one.ask("time.sleep(0.3)")
    one.ask("f = Flood(2000, s)")
    one.ask("time.sleep(0.5)")
    assert one.ask("f.in_flight()") < 400
    broker.new_page()
    broker.start()
    broker.wait_for(What.DRAINED, 1001)
    broker.sole()
    one.ask("f.join()")


def test_a_first_launch_without_a_broker_is_refused(one: Program) -> None:
    one.place.broker.stop()
    assert one.error("launch()") == NOT_INITIALIZED
    one.place.broker.start()
    one.place.broker.generous = True
    one.ask("launch()")


def test_a_broker_that_knows_no_leases_meters_nothing(place: Place) -> None:
    place.broker.metered = False
    with place.program() as one:
        one.ask("launch()")
        place.broker.stop()
        place.broker.start()
        one.ask("launches(20)")
