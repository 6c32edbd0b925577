"""Containers with several cards get them together, whoever else wants one of them."""

from __future__ import annotations

import random
import signal
import time
from contextlib import ExitStack

import pytest

from isolation.leases.flood import Flooder
from support.isolated import Isolated

pytestmark = pytest.mark.slow
MIB = 1 << 20


@pytest.mark.timeout(300)
def test_gangs_killed_and_stopped_at_any_moment_never_wait_for_each_other(place: Isolated) -> None:
    chance = random.Random(7)  # noqa: S311  chooses what happens
    some = [(place.prepare([MIB, MIB], share=250), "gang 2") for _ in range(3)]
    some.append((place.prepare([MIB], share=250), "flood"))
    with ExitStack() as stack:
        there = [stack.enter_context(Flooder(*each)) for each in some]
        for _ in range(25):
            who = chance.randrange(len(there))
            match chance.choice(("kill", "stop", "go on")):
                case "kill":
                    there[who].kill()
                    there[who] = stack.enter_context(Flooder(*some[who]))
                case "stop":
                    there[who].send(signal.SIGSTOP)
                case _:
                    there[who].send(signal.SIGCONT)
            time.sleep(chance.random() * 0.05)
        for each in there:
            each.send(signal.SIGCONT)
        for each in there:
            each.more_turns(2)
