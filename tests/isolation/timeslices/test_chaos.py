"""Processes and the broker fail at any time in any way: afterwards every remaining process gets turns.

`make soak-rounds` does the same for longer.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import ExitStack

import pytest

from isolation.timeslices.flood import Flooder
from support.extent import is_all
from support.isolated import Contained, Isolated, until

pytestmark = pytest.mark.slow
STEPS = int(os.environ.get("TEST_STEPS", "40" if is_all() else "20"))


class Crowd:
    def __init__(self, containers: list[Contained], stack: ExitStack, seed: int) -> None:
        self._containers, self._stack = containers, stack
        self.chance = random.Random(seed)  # noqa: S311  chooses what happens
        self.there = [self._another(each) for each in containers for _ in range(2)]

    def happens(self) -> None:
        who = self.chance.randrange(len(self.there))
        process = self.there[who]
        match self.chance.choice(["kill", "stop", "go on", "go on"]):
            case "kill":
                process.kill()
                self.there[who] = self._another(self._containers[who // 2])
            case "stop":
                process.send(signal.SIGSTOP)
            case _:
                process.send(signal.SIGCONT)

    def all_go_on(self) -> None:
        for process in self.there:
            process.send(signal.SIGCONT)

    def _another(self, container: Contained) -> Flooder:
        return self._stack.enter_context(Flooder(container, "forever"))


def test_killed_stopped_and_let_go_on_at_any_moment(place: Isolated) -> None:
    containers = [place.prepare(share=share) for share in (100, 300, 600)]
    with ExitStack() as stack:
        crowd = Crowd(containers, stack, seed=1)
        for step in range(STEPS):
            crowd.happens()
            time.sleep(crowd.chance.random() * 0.05)
            if step % 15 == 14:
                place.broker.restart()
        crowd.all_go_on()
        for process in crowd.there:
            process.more_turns(2)
        times = [container.told().cards[0].time for container in containers]
        assert [told.processes for told in times if told] == [2, 2, 2]
    until(lambda: not any(told.processes for each in containers if (told := each.told().cards[0].time)))
