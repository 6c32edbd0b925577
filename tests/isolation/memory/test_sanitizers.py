"""The library's own memory errors and data races: programs race for memory under sanitizers and Valgrind.

Any report fails the test. The library and the programs are built with a sanitizer, the driver is not: every report is
about our code. Valgrind runs the library as it ships.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from bench.isolation import race
from bench.isolation.place import Place, a_place
from bench.isolation.programs import programs
from bench.isolation.race import Course, Race
from partage_simgpu.build import READY_MADE
from support.sanitized import OPTIONS, SANITIZERS, VALGRIND, preload, runtimes, small_driver
from support.sanitized import programs as sanitized_programs
from support.simgpu import card

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended("whole programs under each sanitizer; test_units has the library's core under them"),
]

CONTEXT_MIB: Final = 16
LIMIT_MIB: Final = 256
LARGEST_MIB: Final = 16


@pytest.fixture(autouse=True)
def with_small_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READY_MADE, str(small_driver()))


def raced(place: Place, environment: Mapping[str, str], page: Path, *, operations: int, limit: int) -> int:
    """Rounds with kills and stops, until all survivors exit by themselves; returns how often one was refused."""
    course = Course(environment, limit, CONTEXT_MIB, processes=3, threads=4, operations=operations, mib=LARGEST_MIB)
    with Race(course, page) as race:
        for _ in range(2):
            race.round()
        race.finish()
    return race.seen.refused


@pytest.mark.parametrize("sanitizer", list(SANITIZERS))
def test_a_sanitizer_has_nothing_to_report(tmp_path: Path, sanitizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = preload(sanitizer)
    own = sanitized_programs(sanitizer)
    monkeypatch.setattr(race, "programs", lambda: own)
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as place:
        container = place.container(memory_mib=LIMIT_MIB, objects=objects)
        first = f"{runtimes(sanitizer)}:{container.preload}"
        environment = {**container.environment, **OPTIONS, "LD_PRELOAD": first}
        refused = raced(place, environment, tmp_path / "page", operations=20, limit=container.limit)
        done = subprocess.run([own / "closing", "16"], env=environment, capture_output=True, text=True, check=False)
    assert refused > 0
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind, which is a package of that name")
def test_valgrind_has_nothing_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "programs"
    own.mkdir()
    for name in ("race", "closing"):
        wrapped = f'#!/bin/sh\nexec {" ".join(VALGRIND)} {programs() / name} "$@"\n'
        (own / name).write_text(wrapped)
        (own / name).chmod(0o755)
    monkeypatch.setattr(race, "programs", lambda: own)
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as place:
        container = place.container(memory_mib=LIMIT_MIB)
        refused = raced(place, container.environment, tmp_path / "page", operations=8, limit=container.limit)
        argv = [str(own / "closing"), "16"]
        done = subprocess.run(argv, env=dict(container.environment), capture_output=True, text=True, check=False)
    assert refused > 0
    assert (done.returncode, done.stderr) == (0, "")
