"""Wherever a process ends or stops within the time slice protocol, others get their turns."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack

import pytest

from isolation.timeslices.flood import Flooder, flooders
from isolation.timeslices.member_process import STEPS
from support.extent import drawn
from support.isolated import Contained, Isolated, until

pytestmark = pytest.mark.slow


def is_there(process: Flooder) -> None:
    """Wait until it is at its step."""
    process.wait(lambda: bool(process.turns))


def processes(container: Contained) -> int:
    """Number of the container's processes that may launch."""
    time = container.told().cards[0].time
    assert time is not None
    return time.processes


@pytest.mark.parametrize("step", drawn("isolation/leases: kills", STEPS, 3))
def test_one_that_is_killed_there_is_gone_and_the_others_have_turns(place: Isolated, step: str) -> None:
    killed, container, rival = (place.prepare(share=300) for _ in range(3))
    with flooders(container, rival) as (one, other), Flooder(killed, f"step {step}") as victim:
        is_there(victim)
        victim.kill()
        one.more_turns(3)
        other.more_turns(3)
        until(lambda: processes(killed) == 0)


@pytest.mark.parametrize("step", drawn("isolation/leases: stops", STEPS, 3))
def test_one_that_stops_there_keeps_nobody_from_turns(place: Isolated, step: str) -> None:
    stopped, container, rival = (place.prepare(share=300) for _ in range(3))
    with flooders(container, rival) as (one, other), Flooder(stopped, f"step {step}") as victim:
        is_there(victim)
        victim.send(signal.SIGSTOP)
        one.more_turns(5)
        other.more_turns(5)
        victim.send(signal.SIGCONT)
        one.more_turns(3)
        assert processes(stopped) == 1


@pytest.mark.parametrize("step", ["wants", "holds"])
def test_a_child_that_is_left_there_with_the_connections_is_nobody(place: Isolated, step: str) -> None:
    killed, container, rival = (place.prepare(share=300) for _ in range(3))
    with flooders(container, rival) as (one, other), Flooder(killed, f"forked step {step}") as victim:
        try:
            is_there(victim)
            victim.kill()
            one.more_turns(3)
            other.more_turns(3)
            until(lambda: processes(killed) == 0)
        finally:
            os.kill(victim.child, signal.SIGKILL)


def test_a_broker_that_is_killed_while_there_is_one_at_each_serves_whoever_joins(place: Isolated) -> None:
    container, rival = (place.prepare(share=300) for _ in range(2))
    away = {step: place.prepare(share=50) for step in STEPS}
    with ExitStack() as stack:
        one, other = (stack.enter_context(Flooder(each, "forever")) for each in (container, rival))
        for step, each in away.items():
            is_there(stack.enter_context(Flooder(each, f"step {step}")))
        place.broker.restart()
        one.more_turns(3)
        other.more_turns(3)
        assert {step: processes(each) for step, each in away.items()} == dict.fromkeys(STEPS, 0)
