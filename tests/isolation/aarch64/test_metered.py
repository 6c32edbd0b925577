"""An aarch64 program on a simulated card with a real broker: memory is limited, and launches take turns."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from isolation.aarch64.emulator import SIMULATION, Emulator, library, made
from support.isolated import Contained, Isolated, isolated, until
from support.simgpu import card

pytestmark = pytest.mark.slow

MIB: Final = 1 << 20
CONTEXT: Final = 64 * MIB
OUT_OF_MEMORY: Final = 2
MANY: Final = 5
"""More time slices than a process gets that is alone."""
_FOLDER: Final = "usr/lib/aarch64-linux-gnu"
_SMALL: Final = card("t4", memory_mib=4096, reserved_mib=0, context_mib=CONTEXT // MIB, module_mib=0)


@pytest.fixture(scope="module")
def simulation() -> Path:
    """The simulated driver, and a program that floods a card."""
    return made("simgpu/native", *SIMULATION, only=("libcuda.so", "flood"))


@pytest.fixture(scope="module")
def place(machine: Emulator, simulation: Path) -> Iterator[Isolated]:
    with isolated(cards=(_SMALL,), library=library()) as place:
        folder = place.node.root / _FOLDER
        folder.mkdir(parents=True)
        shutil.copy(simulation / "libcuda.so", folder / "libcuda.so.1")
        yield place


class Programs:
    """Programs of containers, run by the emulator."""

    def __init__(self, machine: Emulator, place: Isolated) -> None:
        self._machine, self._driver = machine, str(place.node.root / _FOLDER)

    @contextmanager
    def started(self, container: Contained, *command: str | Path) -> Generator[subprocess.Popen[str]]:
        container.install(library())
        pipe = subprocess.PIPE
        words, env = self._machine.started(
            command, {"PATH": os.environ["PATH"], "LD_PRELOAD": container.preload, "LD_LIBRARY_PATH": self._driver}
        )
        with subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def programs(machine: Emulator, place: Isolated) -> Programs:
    return Programs(machine, place)


def line(process: subprocess.Popen[str], order: str = "") -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    if order:
        process.stdin.write(f"{order}\n")
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


def test_it_gets_no_more_than_its_limit(programs: Programs, place: Isolated) -> None:
    container, taking = place.prepare(512 * MIB), made("tests/preload/programs", only=("taking",)) / "taking"
    with programs.started(container, taking) as process:
        assert line(process) == {"ready": True}
        assert line(process, "take 256")["result"] == 0
        view = line(process, "take 256")
        assert (view["result"], view["total"]) == (OUT_OF_MEMORY, 512 * MIB)
        assert view["free"] <= 512 * MIB - CONTEXT - 256 * MIB
        assert container.told().cards[0].used_bytes == 256 * MIB
        assert line(process, "free")["result"] == 0
        assert line(process, "take 384")["result"] == 0
        process.communicate()


def turns(container: Contained) -> int:
    time = container.told().cards[0].time
    return time.timeslices if time is not None else 0


def test_two_that_flood_a_card_take_turns(programs: Programs, place: Isolated, simulation: Path) -> None:
    containers = [place.prepare(512 * MIB, share=300) for _ in range(2)]
    with ExitStack() as stack:
        flood = (simulation / "flood", "--seconds", "100000", "--kernel-us", "1000")
        both = [stack.enter_context(programs.started(each, *flood)) for each in containers]
        until(lambda: all(turns(each) > MANY for each in containers))
        assert [one.poll() for one in both] == [None, None]
