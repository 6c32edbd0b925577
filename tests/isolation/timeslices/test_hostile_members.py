"""A process that breaks the time slice protocol, or stops, harms only its own container."""

from __future__ import annotations

import os
import time

import pytest

from isolation.timeslices.flood import Flooder, flooders
from isolation.timeslices.members import Member
from partage_isolation.wire import packets as wire
from partage_isolation.wire.messages import TimeReport
from partage_isolation.wire.packets import What
from support.isolated import Contained, Isolated, until
from support.procfs import cpu_s

pytestmark = pytest.mark.slow


def time_of(container: Contained) -> TimeReport:
    told = container.told().cards[0].time
    assert told is not None
    return told


def test_one_that_never_says_that_it_is_done_is_not_waited_for(place: Isolated) -> None:
    silent, container = place.prepare(share=500), place.prepare(share=500)
    with Flooder(silent, "silent"), Flooder(container) as flooder:
        flooder.more_turns(10)
        until(lambda: time_of(silent).overlaps > 0)


@pytest.mark.parametrize("what", [What.JOIN, What.DRAINED])
def test_a_flood_costs_its_own_container(place: Isolated, what: What) -> None:
    hostile, container, rival = place.prepare(share=500), place.prepare(share=500), place.prepare(share=500)
    with Flooder(hostile, f"packets {what.value}") as flood, flooders(container, rival) as (one, other):
        before = cpu_s(place.broker.pid)
        began = time.monotonic()
        one.more_turns(20)
        other.more_turns(5)
        assert cpu_s(place.broker.pid) - before < 0.7 * (time.monotonic() - began)
        flood.read()


def test_whatever_is_in_a_packet_the_broker_goes_on(place: Isolated) -> None:
    hostile, container = place.prepare(share=500), place.prepare(share=500)
    with Member(hostile.socket) as one, Member(container.socket) as other:
        one.join()
        other.join()
        assert one.client.signals
        for what in (What.WANT, What.DRAINED, What.IDLE, What.PING, What.PONG, What.LINE):
            for body in (b"\xff" * 48, os.urandom(48)):
                one.client.signals.send(wire.question(what, card=0, body=body))
        assert one.client.lend(0)
        assert other.wait_open()
