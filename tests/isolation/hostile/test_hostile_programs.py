"""A hostile program harms its own container at most: its neighbour keeps its memory, and the broker keeps working."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from bench.isolation.place import MIB, Place, a_place
from bench.isolation.programs import programs
from bench.isolation.race import Course, Race
from support.isolated import Contained
from support.procfs import descriptors
from support.simgpu import card

pytestmark = pytest.mark.slow

CONTEXT_MIB: Final = 64
LIMIT_MIB: Final = 1024
ATTACKS: Final = Path(__file__).with_name("attacks.py")
OK, NO, UNKNOWN = 0, 1, 3
ROUNDS: Final = 4


@pytest.fixture
def place() -> Iterator[Place]:
    """A node with one card."""
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as made:
        yield made


class Attack:
    def __init__(self, place: Place, container: Contained, name: str, *words: str) -> None:
        argv = [sys.executable, "-P", str(ATTACKS), name, str(container.socket), *words]
        environment = {**place.node.environment, "PYTHONPATH": ":".join(sys.path)}
        self.process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def end(self) -> dict[str, Any]:
        """End it, and return its result."""
        told, _ = self.process.communicate()
        assert self.process.returncode == 0
        return dict(json.loads(told.splitlines()[-1]))

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@contextmanager
def attacking(place: Place, container: Contained, name: str, *words: str) -> Generator[Attack]:
    """Run a hostile program meanwhile."""
    attack = Attack(place, container, name, *words)
    try:
        yield attack
    finally:
        attack.kill()


def course(place: Place, container: Contained, processes: int) -> Course:
    environment, settled = container.environment, place.settled(container)
    return Course(
        environment, container.limit, CONTEXT_MIB, processes=processes, settled=settled, charged=place.charged
    )


@contextmanager
def unharmed(place: Place, tmp_path: Path, victim: Contained) -> Generator[None]:
    """Another container races for its memory during and after the block, as if it were alone."""
    broker = place.broker_pid
    place.warm_up(victim, CONTEXT_MIB, tmp_path)
    with Race(course(place, victim, processes=3), tmp_path / "victim") as race:
        race.round()
        before = descriptors(place.broker_pid)
        yield
        for _ in range(ROUNDS):
            race.round()
        race.finish()
    assert race.seen.wrong == []
    assert race.seen.refused > 0
    assert place.broker_pid == broker
    assert "Traceback" not in place.log
    place.until("the broker has closed what it had open", lambda: descriptors(place.broker_pid) <= before)


def test_noise_harms_nobody(place: Place, tmp_path: Path) -> None:
    victim, hostile = place.container(memory_mib=LIMIT_MIB), place.container(memory_mib=LIMIT_MIB)
    with unharmed(place, tmp_path, victim), attacking(place, hostile, "forge") as attack:
        with Race(course(place, victim, processes=1), tmp_path / "beside") as race:
            race.round()
            race.finish()
        told = attack.end()
        assert told["sent"] > 0
    assert hostile.told().cards[0].charged_bytes <= hostile.limit


def test_memory_taken_past_the_library_is_charged_and_found(place: Place, tmp_path: Path) -> None:
    victim, hostile = place.container(memory_mib=LIMIT_MIB), place.container(memory_mib=LIMIT_MIB)
    with unharmed(place, tmp_path, victim), attacking(place, hostile, "take_past", "1500") as thief:
        thief.line()
        place.until("it is charged", lambda: hostile.told().cards[0].charged_bytes >= 1500 * MIB)
        place.until("it is found", lambda: place.findings)
        thief.end()


def test_a_program_may_close_our_sockets_and_have_others_in_their_places(place: Place) -> None:
    container = place.container(memory_mib=LIMIT_MIB)
    argv = [str(programs() / "closing"), "64"]
    done = subprocess.run(argv, env=dict(container.environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["closed"] >= 1
    assert told["replaced"] >= 1
    assert told["foreign_bytes"] == 0
    assert len(set(told["pieces"])) == 1
    assert place.node.status()[0].peak_bytes <= container.limit
