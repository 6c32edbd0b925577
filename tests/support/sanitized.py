"""Builds for the tools that see errors in memory and races: the library and programs with a sanitizer, and a driver.

That one has less address space than usual: the tools need the most of it themselves.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from partage_isolation.library.objects import sources as library_sources
from partage_simgpu.build import sources as simulation_sources

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache/sanitized"
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


def made(folder: Path, out: Path, *variables: str) -> Path:
    """What the Makefile of a folder builds."""
    argv = ["make", "-s", "-C", str(folder), f"-j{os.cpu_count() or 1}", f"OUT={out}", *variables]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def small_driver() -> Path:
    """The simulated card, for whoever sets READY_MADE."""
    return made(simulation_sources(), CACHE / "simgpu", f"CFLAGS={SMALL_ARENA}")


def preload(sanitizer: str) -> Path:
    """The library with it."""
    out = CACHE / f"preload-{sanitizer.replace(',', '-')}"
    return made(library_sources(), out, f"SANITIZE={sanitizer}", "CFLAGS=-O1 -g")


def runtimes(sanitizer: str) -> str:
    """The compiler's own libraries of it, which must come first in LD_PRELOAD."""
    return ":".join(map(_runtime, SANITIZERS[sanitizer]))


def _runtime(name: str) -> str:
    done = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()
