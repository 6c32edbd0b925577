"""Builds for sanitizers and valgrind: the library and programs with a sanitizer, and a driver for them.

The driver reserves less address space than usual, because the tools need most of it themselves.
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
"""Exit status of a program with a reported error."""

SANITIZERS: Final[Mapping[str, tuple[str, ...]]] = {
    "address,undefined": ("libasan.so", "libubsan.so"),
    "thread": ("libtsan.so",),
}
OPTIONS: Final = {
    # Memory still held at exit is not a leak: the driver holds it.
    "ASAN_OPTIONS": f"detect_leaks=0:exitcode={REPORTED}",
    "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:exitcode={REPORTED}",
    "TSAN_OPTIONS": f"halt_on_error=1:exitcode={REPORTED}",
}
VALGRIND: Final = ("valgrind", "-q", f"--error-exitcode={REPORTED}")


def small_driver() -> Path:
    """The simulated driver with a small arena; pass it in READY_MADE."""
    return made(simulation_sources(), f"CFLAGS={SMALL_ARENA}")


def preload(sanitizer: str) -> Path:
    """The library with this sanitizer."""
    return made(library_sources(), f"SANITIZE={sanitizer}", "CFLAGS=-O1 -g")


def programs(sanitizer: str) -> Path:
    """The programs that test the library, with this sanitizer."""
    return made(SOURCES, f"CFLAGS=-O1 -g -fsanitize={sanitizer}")


def runtimes(sanitizer: str) -> str:
    """The sanitizer's runtime libraries, which must come first in LD_PRELOAD."""
    return ":".join(map(_runtime, SANITIZERS[sanitizer]))


def _runtime(name: str) -> str:
    done = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()
