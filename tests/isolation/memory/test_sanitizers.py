"""The library's own memory errors and data races: programs that race for memory under the tools that see them.

Any report fails the test. The library and the programs are built with a sanitizer, the driver is not: what is reported
is ours. Valgrind runs the library as it ships. The simulated driver is built with less address space than usual: tools
need the most of it themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from bench.isolation import race
from bench.isolation.place import Place, a_place
from bench.isolation.programs import make, programs
from bench.isolation.race import Course, Race
from partage_isolation.library.objects import sources as library_sources
from partage_simgpu.build import READY_MADE
from partage_simgpu.build import sources as simulation_sources
from support.simgpu import card

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONTEXT_MIB: Final = 16
LIMIT_MIB: Final = 256
LARGEST_MIB: Final = 16
CACHE: Final = Path(__file__).resolve().parents[3] / ".cache/sanitized"
SMALL_ARENA: Final = "-O2 -g -DARENA_BYTES=0x40000000"
REPORTED: Final = 66
"""With this status a program ends of which something was reported."""

SANITIZERS: Final[Mapping[str, tuple[str, ...]]] = {
    "address,undefined": ("libasan.so", "libubsan.so"),
    "thread": ("libtsan.so",),
}
OPTIONS: Final = {
    # What the process still holds at its end is no leak to look for: the driver holds it.
    "ASAN_OPTIONS": f"detect_leaks=0:exitcode={REPORTED}",
    "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:exitcode={REPORTED}",
    "TSAN_OPTIONS": f"halt_on_error=1:exitcode={REPORTED}",
}


@pytest.fixture(scope="module")
def small_driver() -> str:
    """A build of the simulated card that leaves address space to others."""
    out = CACHE / "simgpu"
    built(simulation_sources(), out, f"CFLAGS={SMALL_ARENA}")
    return str(out)


@pytest.fixture(autouse=True)
def with_small_driver(small_driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READY_MADE, small_driver)


def built(folder: Path, out: Path, *variables: str) -> None:
    argv = ["make", "-s", "-C", str(folder), f"-j{os.cpu_count() or 1}", f"OUT={out}", *variables]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def runtime(name: str) -> str:
    """The compiler's own library of that name."""
    done = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def raced(place: Place, environment: Mapping[str, str], page: Path, *, operations: int, limit: int) -> int:
    """Rounds with kills and stops, until all that live end by themselves; how often one was refused."""
    course = Course(environment, limit, CONTEXT_MIB, processes=3, threads=4, operations=operations, mib=LARGEST_MIB)
    with Race(course, page) as race:
        for _ in range(2):
            race.round()
        race.finish()
    return race.seen.refused


@pytest.mark.parametrize("sanitizer", list(SANITIZERS))
def test_a_sanitizer_has_nothing_to_report(tmp_path: Path, sanitizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = sanitizer.replace(",", "-")
    objects, flags = CACHE / f"preload-{name}", f"-O1 -g -fsanitize={sanitizer}"
    built(library_sources(), objects, f"SANITIZE={sanitizer}", "CFLAGS=-O1 -g")
    own = make(CACHE / f"programs-{name}", {"CFLAGS": flags})
    monkeypatch.setattr(race, "programs", lambda: own)
    with a_place(cards=(card("h100", context_mib=CONTEXT_MIB),)) as place:
        container = place.container(memory_mib=LIMIT_MIB, objects=objects)
        first = ":".join(map(runtime, SANITIZERS[sanitizer]))
        environment = {**container.environment, **OPTIONS, "LD_PRELOAD": f"{first}:{container.preloaded}"}
        refused = raced(place, environment, tmp_path / "page", operations=20, limit=container.limit)
        done = subprocess.run([own / "closing", "16"], env=environment, capture_output=True, text=True, check=False)
    assert refused > 0
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind, which is a package of that name")
def test_valgrind_has_nothing_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "programs"
    own.mkdir()
    for name in ("race", "closing"):
        wrapped = f'#!/bin/sh\nexec valgrind -q --error-exitcode={REPORTED} {programs() / name} "$@"\n'
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
