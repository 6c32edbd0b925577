"""Builds for the tools that see errors in memory and races: the library and programs with a sanitizer, and a driver.

That one has less address space than usual: the tools need the most of it themselves.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.isolation.programs import SOURCES
from partage_isolation.library.objects import sources as library_sources
from partage_simgpu.build import sources as simulation_sources
from support.builds import made

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
VALGRIND: Final = ("valgrind", "-q", f"--error-exitcode={REPORTED}")


def small_driver() -> Path:
    """The simulated card, for whoever sets READY_MADE."""
    return made(simulation_sources(), f"CFLAGS={SMALL_ARENA}")


def preload(sanitizer: str) -> Path:
    """The library with it."""
    return made(library_sources(), f"SANITIZE={sanitizer}", "CFLAGS=-O1 -g")


def programs(sanitizer: str) -> Path:
    """The programs that try the library, with it."""
    return made(SOURCES, f"CFLAGS=-O1 -g -fsanitize={sanitizer}")


def runtimes(sanitizer: str) -> str:
    """The compiler's own libraries of it, which must come first in LD_PRELOAD."""
    return ":".join(map(_runtime, SANITIZERS[sanitizer]))


def _runtime(name: str) -> str:
    done = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()
