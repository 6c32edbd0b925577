"""Programs unaware of partage share a card as guaranteed to their containers, by the card's own account."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Self

import pytest

from bench.isolation.programs import programs
from partage_isolation.library.objects import built as built_library
from partage_isolation.wire.messages import TimeReport
from partage_simgpu.build import built as built_programs
from support.isolated import Contained, Isolated, isolated, until
from support.simgpu import card, driver_past

pytestmark = pytest.mark.slow
FOR_LONG = "3600"
KILLS = int(os.environ.get("TEST_BROKER_KILLS", "3"))
"""`make soak-rounds` does it more often."""


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    """A card, and the library of this tree."""
    card_ = card("t4", memory_mib=8192, reserved_mib=100, context_mib=64)
    with isolated(cards=(card_,), library=built_library()) as place:
        yield place


class Program:
    """A program of the simulated card, or one given by path, in a container."""

    def __init__(self, container: Contained, *words: str) -> None:
        container.install(built_library())
        self.container = container
        environment = {**os.environ, **container.place.node.environment, "LD_PRELOAD": container.preload}
        argv = [str(built_programs() / words[0]), "--seconds", FOR_LONG, *words[1:]]
        self._process = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL)
        until(lambda: self.time.processes > 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def time(self) -> TimeReport:
        """The program's times, as the broker reports them."""
        told = self.container.told().cards[0].time
        assert told is not None
        return told

    @property
    def busy_ns(self) -> int:
        """Total busy time of the card for it."""
        assert self._process.poll() is None, "the program has ended"
        processes = self.container.place.node.status()[0].processes
        return next((each.busy_ns for each in processes if each.pid == self._process.pid), 0)

    def has_turns(self) -> None:
        """Wait until it has turns from this broker."""
        until(lambda: self.time.processes == 1 and self.time.timeslices > 1)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def more(self, seconds: float) -> None:
        """Wait until it had this much more time of the card."""
        enough = self.busy_ns + round(seconds * 1e9)
        until(lambda: self.busy_ns >= enough)


def shared(one: Program, other: Program, seconds: float) -> float:
    """Card time of the first per second of the other, measured until the other had this many seconds."""
    before = one.busy_ns, other.busy_ns
    other.more(seconds)
    return (one.busy_ns - before[0]) / (other.busy_ns - before[1])


@pytest.mark.parametrize("words", [("flood", "--kernel-us", "1000"), ("graph-replay",)], ids=str)
def test_two_that_want_all_get_what_they_were_promised(place: Isolated, words: tuple[str, ...]) -> None:
    some = [place.prepare(share=share) for share in (250, 750)]
    with Program(some[0], *words) as small, Program(some[1], *words) as large:
        large.more(1)  # the first was alone, and had launched ahead
        assert 0.2 < shared(small, large, 2) < 0.55  # 1 to 3; both are late now and then
        assert small.time.timeslices > 5


@pytest.mark.parametrize("way", ["past", "open", "leaked", "blocking", "green", "updated"])
def test_ordinary_calls_lead_around_no_lease(place: Isolated, way: str) -> None:
    """An unmetered program would get as much of the card as the other one."""
    some = [place.prepare(share=share) for share in (100, 900)]
    floods = str(programs() / "ways"), way, str(driver_past(place.node))
    with Program(some[0], *floods) as hostile, Program(some[1], "flood", "--kernel-us", "1000") as other:
        other.more(0.5)
        assert shared(hostile, other, 1.5) < 0.3  # 1 to 9


def test_the_broker_may_be_killed_under_them(place: Isolated) -> None:
    some = [place.prepare(share=share) for share in (250, 750)]
    with ExitStack() as stack:
        small, large = (stack.enter_context(Program(each, "flood")) for each in some)
        for _ in range(KILLS):
            place.broker.kill()
            time.sleep(0.05)
            place.broker.start()
            for each in (small, large):
                each.has_turns()
                each.more(0.05)
        large.more(2)  # work that was launched while nobody else was there is in flight
        assert 0.2 < shared(small, large, 2) < 0.55
