"""A process that breaks the protocol of leases, or stands still, harms its own container alone."""

from __future__ import annotations

import os
import signal
import time

import pytest

from isolation.leases.flood import Flooder, flooders
from isolation.leases.members import Member
from partage_isolation.leases.line import EPOCHS
from partage_isolation.wire import packets as wire
from partage_isolation.wire.messages import TimeTold
from partage_isolation.wire.packets import Lease, Result, What
from support.isolated import Contained, Isolated, until

pytestmark = pytest.mark.slow


def time_of(container: Contained) -> TimeTold:
    told = container.told().cards[0].time
    assert told is not None
    return told


def test_one_that_never_says_that_it_is_done_is_not_waited_for(place: Isolated) -> None:
    silent, container = place.prepare(share=500), place.prepare(share=500)
    with Flooder(silent, "silent"), Flooder(container) as flooder:
        flooder.more_turns(10)
        until(lambda: time_of(silent).overlaps > 0)


def test_one_that_is_killed_while_it_has_the_card_leaves_it_at_once(place: Isolated) -> None:
    killed, container = place.prepare(share=500), place.prepare(share=500)
    with flooders(killed, container) as (victim, flooder):
        flooder.more_turns(3)
        victim.kill()
        until(lambda: time_of(killed).processes == 0)
        until(lambda: time_of(container).state == "free")
        assert time_of(killed).state == "closed"


def test_one_that_is_stopped_keeps_nobody_waiting_and_comes_back(place: Isolated) -> None:
    stopped, container, rival = (place.prepare(share=300) for _ in range(3))
    with flooders(stopped, container, rival) as (victim, flooder, other):
        victim.more_turns(2)
        victim.send(signal.SIGSTOP)
        flooder.more_turns(20)
        other.more_turns(5)
        victim.send(signal.SIGCONT)
        victim.more_turns(3)


def test_a_stopped_process_keeps_its_siblings_from_nothing(place: Isolated) -> None:
    container, rival = place.prepare(share=500), place.prepare(share=500)
    with flooders(container, container, rival) as (victim, sibling, other):
        victim.more_turns(2)
        victim.send(signal.SIGSTOP)
        sibling.more_turns(20)
        other.more_turns(10)


@pytest.mark.parametrize("what", [What.WANT, What.DRAINED, What.IDLE])
def test_epochs_of_other_times_say_nothing(place: Isolated, what: What) -> None:
    with Member(place.prepare(share=500).socket) as one, Member(place.prepare(share=500).socket) as other:
        one.join()
        other.join()
        line = one.wait_open()
        before = one.line()
        for wrong in (line.epoch + 1, line.epoch - 1, line.epoch + EPOCHS, 0xFFFFFFFF, line.epoch ^ (1 << 16)):
            one.say(what, 0, Lease(epoch=wrong % (1 << 32)))
        assert one.client.lend(0)  # by then they were heard
        assert one.line() == before
        assert not other.line().is_open
        assert other.wait_open().is_open


def test_one_cannot_speak_for_another(place: Isolated) -> None:
    """Epochs count for each line by itself, and a packet is of whoever sends it."""
    victim, rival = place.prepare(share=500), place.prepare(share=500)
    with Member(victim.socket) as one, Member(rival.socket) as other:
        one.join()
        other.join()
        line = one.wait_open()
        for what in (What.WANT, What.DRAINED, What.IDLE):
            other.say(what, 0, Lease(epoch=line.epoch))
        assert other.client.lend(0)
        assert one.line().epoch == line.epoch
        assert time_of(rival).is_waiting is (other.line().epoch == line.epoch)


def test_what_was_done_later_than_now_or_long_ago_is_nonsense_and_harmless(place: Isolated) -> None:
    liar, container = place.prepare(share=100), place.prepare(share=900)
    with Member(liar.socket) as one, Member(container.socket) as other:
        one.join()
        other.join()
        for at_ns in (0, (1 << 64) - 1, 1):
            line = one.wait_open()
            other.want()
            one.wait_over(line)
            one.drained(at_ns=at_ns)
            other.wait_over(other.wait_open())
            other.drained()
        parts = time_of(liar).got
        assert 0 <= parts.s60 <= parts.s1 + 1 <= 2


def test_a_member_that_hangs_up_is_no_member_and_joins_again(place: Isolated) -> None:
    container, rival = place.prepare(share=500), place.prepare(share=500)
    with Member(container.socket) as one, Member(rival.socket) as other:
        one.join()
        other.join()
        one.wait_open()
        assert one.resume() == Result.OK
        until(lambda: time_of(container).processes == 0)
        one.want()
        assert other.wait_open()
        assert time_of(container).is_waiting is False
        other.idle()
        assert one.join() == Result.OK
        assert one.wait_open()


def test_signals_that_come_anew_are_joined_anew(place: Isolated) -> None:
    container = place.prepare(share=500)
    with Member(container.socket) as one:
        one.join()
        assert one.client.attach() == Result.OK
        until(lambda: time_of(container).processes == 0)
        one.join()
        assert one.wait_open()


def test_a_forked_child_that_keeps_the_connections_open_keeps_no_lease(place: Isolated) -> None:
    killed, container = place.prepare(share=500), place.prepare(share=500)
    child, flooder = Flooder(killed, "forked"), Flooder(container)
    with child, flooder:
        flooder.more_turns(2)
        child.kill()
        try:
            until(lambda: time_of(killed).processes == 0)
            until(lambda: time_of(container).state == "free")
        finally:
            os.kill(child.child, signal.SIGKILL)


@pytest.mark.parametrize("what", [What.JOIN, What.WANT, What.DRAINED, What.IDLE])
def test_a_flood_costs_its_own_container(place: Isolated, what: What) -> None:
    hostile, container, rival = place.prepare(share=500), place.prepare(share=500), place.prepare(share=500)
    with Flooder(hostile, f"packets {what.value}") as flood, flooders(container, rival) as (one, other):
        before = _cpu_s(place.broker.pid)
        began = time.monotonic()
        one.more_turns(20)
        other.more_turns(5)
        assert _cpu_s(place.broker.pid) - before < 0.7 * (time.monotonic() - began)
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


def _cpu_s(pid: int) -> float:
    """Time on a processor so far."""
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
        fields = stat.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
