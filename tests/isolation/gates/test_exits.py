"""Metered programs end while the card has work of theirs, by each way to end (`exits.c` of the programs).

They have half of a simulated card's time, and another container floods it. A call of the driver after its shutdown
kills the program, so the library must not make one. Under tools, every report is about our code: the driver is built
without a sanitizer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from bench.isolation.place import a_place, flooded
from bench.isolation.programs import programs
from partage_simgpu.build import READY_MADE
from support.isolated import Contained
from support.sanitized import OPTIONS, SANITIZERS, VALGRIND, preload, runtimes, small_driver
from support.sanitized import programs as sanitized_programs
from support.simgpu import card

pytestmark = pytest.mark.slow

TIMES: Final = int(os.environ.get("TEST_ENDS", "4"))
TIMES_UNDER_TOOLS: Final = int(os.environ.get("TEST_ENDS_UNDER_TOOLS", "1"))
"""`make soak-rounds` does it more often."""
AT_ONCE: Final = 4
WAYS: Final = ("return", "exit", "quick", "thread", "last", "busy")
LAUNCHES_ON: Final = "busy"
"""A thread of this program calls a driver that may have shut down; in the other ways none does."""
LATE_CALLS_ABORT: Final = {"SIMGPU_ABORTS_LATE_CALLS": "1"}
HANGS_AFTER_S: Final = 30.0
"""Not a bar for time: on an idle machine nothing takes a hundredth of it. Tools such as valgrind are slow."""
UNDER_A_TOOL_S: Final = 10 * HANGS_AFTER_S
MEMORY_MIB, CONTEXT_MIB, HALF = 8192, 16, 500


@contextmanager
def ends(objects: Path | None = None) -> Generator[Contained]:
    """A container with half of a card's time, which another one floods."""
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as place:
        one = place.container(memory_mib=MEMORY_MIB, share=HALF, limit=HALF, objects=objects)
        with flooded(place, place.container(memory_mib=MEMORY_MIB, share=HALF)):
            yield one
        time = one.told().cards[0].time
        assert time is not None
        assert time.timeslices


def end(container: Contained, argv: Sequence[str], more: Mapping[str, str], hangs_after_s: float) -> None:
    """Run a program to its end, and check it."""
    way, environment = argv[-1], {**container.environment, **more}
    if way != LAUNCHES_ON:
        environment |= LATE_CALLS_ABORT
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=hangs_after_s)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["total"] == container.limit, "it was not metered"


def all_end(
    container: Contained,
    times: int,
    *argv: str,
    more: Mapping[str, str] | None = None,
    hangs_after_s: float = UNDER_A_TOOL_S,
) -> None:
    """So often, some at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(end, container, argv, more or {}, hangs_after_s) for _ in range(times)]
        for each in running:
            each.result()


@pytest.fixture(scope="module")
def container() -> Iterator[Contained]:
    with ends() as made:
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_a_program_may_end_without_a_wait(container: Contained, way: str) -> None:
    all_end(container, TIMES, str(programs() / "exits"), way, hangs_after_s=HANGS_AFTER_S)


@pytest.mark.extended("the same under tools, which are slow")
@pytest.mark.parametrize("sanitizer", list(SANITIZERS))
def test_a_sanitizer_has_nothing_to_report_of_an_end(sanitizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READY_MADE, str(small_driver()))
    program = str(sanitized_programs(sanitizer) / "exits")
    with ends(preload(sanitizer)) as container:
        more = {**OPTIONS, "LD_PRELOAD": f"{runtimes(sanitizer)}:{container.preload}"}
        for way in WAYS:
            all_end(container, TIMES_UNDER_TOOLS, program, way, more=more)


@pytest.mark.extended("the same under tools, which are slow")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind, which is a package of that name")
def test_valgrind_has_nothing_to_report_of_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READY_MADE, str(small_driver()))
    with ends() as container:
        for way in WAYS:
            all_end(container, TIMES_UNDER_TOOLS, *VALGRIND, str(programs() / "exits"), way)
