"""Programs and the broker are killed while memory moves: no other program loses a byte or waits in vain.

Each run is determined by its seed. The link is slow, so that most kills hit a move; the run prints how many did. `make
soak-rounds` does a hundred.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from isolation.migration.stage import MIB, crowded, movable, moving, program
from support.isolated import Contained, Isolated, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended("runs by chance; test_moving has a kill of a program and one of the broker"),
]

RUNS: Final = int(os.environ.get("TEST_RUNS", "10"))
STEPS: Final = 6
CARD: Final = 256 * MIB
LIMIT: Final = 160 * MIB
PART: Final = 8 * MIB
"""The smallest transfer over the simulated link."""
PARTS: Final = range(9, 15)


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    with crowded(bus_gb_per_s=1, card_bytes=CARD, context=16 * MIB) as made:
        yield made


class Holder:
    """A container's program, and the byte that fills each part of its memory."""

    def __init__(self, container: Contained, chance: random.Random, stack: ExitStack) -> None:
        self.container, self._chance, self._stack = container, chance, stack
        self.begin()

    def begin(self) -> None:
        self.program = self._stack.enter_context(program(self.container))
        self.program.ask("xs, bs = [], []")
        for _ in range(self._chance.choice(PARTS)):
            self.program.ask(f"xs.append(alloc({PART})); bs.append({self._chance.randrange(256)})")
            self.program.ask(f"write(xs[-1], bytes([bs[-1]]) * {PART})")

    def look(self) -> None:
        """Check every byte; do not wait for the answer."""
        self.program.say(f"all(same(x, bytes([b]) * {PART}) for x, b in zip(xs, bs))")

    def changes(self) -> None:
        number, byte = f"{self._chance.randrange(1 << 16)} % len(xs)", self._chance.randrange(256)
        self.program.ask(f"n = {number}; bs[n] = {byte}; write(xs[n], bytes([{byte}]) * {PART})")

    def frees_and_takes(self) -> None:
        self.program.ask(f"free(xs.pop()); xs.append(alloc({PART})); write(xs[-1], bytes([bs[-1]]) * {PART})")

    def is_between(self) -> bool:
        """Some of its memory is on the card, some on the host."""
        now = moving(self.container)
        return bool(now.resident_bytes and now.moved_bytes)


class Story:
    def __init__(self, place: Isolated, seed: int, stack: ExitStack) -> None:
        self._place = place
        self._chance = random.Random(seed)  # noqa: S311  chooses what happens
        self.kills = Counter[str]()
        containers = [movable(place, LIMIT, share=self._chance.choice((100, 300, 500))) for _ in range(3)]
        self.holders = [Holder(each, self._chance, stack) for each in containers]

    def step(self) -> None:
        """All access their memory, and one process dies; the survivors get their memory."""
        for holder in self.holders:
            holder.look()
        time.sleep(self._chance.random() * 0.3)
        victim = self._chance.choice((*(self._moving() or self.holders), None))
        if victim is None:
            self._kill_broker()
        else:
            self._kill(victim)
        for holder in self.holders:
            if holder is not victim:
                assert holder.program.answer() is True
        if victim is not None:
            victim.begin()
        self._chance.choice(self.holders).changes()
        self._chance.choice(self.holders).frees_and_takes()

    def _moving(self) -> list[Holder]:
        return [each for each in self.holders if each.is_between()]

    def _kill(self, victim: Holder) -> None:
        self.kills["between" if victim.is_between() else "whole"] += 1
        victim.program.kill()

    def _kill_broker(self) -> None:
        self.kills["broker, between" if self._moving() else "broker"] += 1
        self._place.broker.restart()


def is_empty(place: Isolated) -> bool:
    """The card holds nothing, and nothing is charged."""
    return not place.node.status()[0].used_bytes and not any(each.processes for each in place.told().containers)


@pytest.mark.parametrize("seed", range(RUNS))
def test_who_is_left_has_every_byte_and_the_room_of_who_is_gone(place: Isolated, seed: int) -> None:
    with ExitStack() as stack:
        story = Story(place, seed, stack)
        for _ in range(STEPS):
            story.step()
        for holder in story.holders:
            holder.program.kill()
        print(f"\nseed {seed}: {dict(story.kills)}")  # noqa: T201  pytest shows it with a failure
    until(lambda: is_empty(place), why=lambda: f"{place.node.status()[0]}: all room comes back")
