"""Many threads at once: none is refused what fits, and at the end nothing is charged."""

from __future__ import annotations

import signal
import time

import pytest

from isolation.memory.stage import MIB, Program
from partage_isolation.wire.packets import Packet, What
from support.lender import Lender, Row, honest

pytestmark = pytest.mark.slow


def test_a_broker_that_is_slow_is_not_one_that_is_away(one: Program) -> None:
    """The last of them has its turn only after more than a call waits for a broker that says nothing."""

    def slow(lender: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.LEND:
            time.sleep(0.5)
        return honest(lender, row, packet)

    one.place.broker.gives_credit = False
    one.place.broker.answering = slow
    assert one.ask("race(13, 1, keeps=True)") == []
    one.place.broker.answering = honest
    assert one.used == one.held == 26 * MIB


def test_a_process_that_stood_still_asks_on(one: Program) -> None:
    """Longer than a call waits, one thread with a question under way and the others behind it."""

    def stops_it(lender: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.LEND and not stopped:
            stopped.append(packet)
            one.send(signal.SIGSTOP)
        return honest(lender, row, packet)

    stopped: list[Packet] = []
    one.place.broker.gives_credit = False
    one.place.broker.answering = stops_it
    one.say("race(8, 1)")
    assert not one.has_answered(within_s=6)
    one.send(signal.SIGCONT)
    assert one.answer() == []
    assert one.used == one.held == 0


def test_a_process_that_stood_still_tries_once_more_what_failed(one: Program) -> None:
    """Its time is over when it goes on, but not because the broker was away."""

    def stops_it(lender: Lender, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.LEND and not stopped:
            stopped.append(packet)
            one.send(signal.SIGSTOP)
            return b"cut off"
        return honest(lender, row, packet)

    stopped: list[Packet] = []
    one.place.broker.gives_credit = False
    one.place.broker.answering = stops_it
    one.say("a = alloc(2 << 20)")
    assert not one.has_answered(within_s=6)
    one.send(signal.SIGCONT)
    assert one.answer() is None
    assert one.used == one.held == 2 * MIB
