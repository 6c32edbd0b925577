"""Records where a figure was measured, without which it is worthless."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
QUIET_LOAD: Final = 0.7
"""A machine with more runnable processes than this, before we start, is also doing other work."""

Surroundings = dict[str, object]
_STEAL: Final = 7
"""Index of a column of /proc/stat; the first eight make up all time."""


@dataclass(frozen=True)
class Time:
    """Ticks of all processors since boot."""

    whole: int
    stolen: int
    """Taken by the hypervisor for other machines while something here was runnable."""

    def stolen_since(self, before: "Time") -> float:
        return (self.stolen - before.stolen) / max(1, self.whole - before.whole)


def time_in(stat: str) -> Time:
    columns = [int(each) for each in stat.partition("\n")[0].split()[1:]]
    return Time(whole=sum(columns[: _STEAL + 1]), stolen=columns[_STEAL])


def time_now() -> Time:
    return time_in(Path("/proc/stat").read_text(encoding="utf-8"))


def surroundings(libraries: Sequence[str]) -> Surroundings:
    """The machine, its load, and the measured versions. Call before measuring."""
    load = os.getloadavg()
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(value, 2) for value in load],
        "busy": load[0] > QUIET_LOAD,
        "kernel": platform.release(),
        "python": f"{platform.python_version()}, {os.path.realpath(sys.executable)}",
        "libraries": {name: _version(name) for name in libraries},
        "commit": _git("rev-parse", "HEAD"),
        "dirty": _git("status", "--porcelain") not in {"", None},
    }


def cpu_model_in(cpuinfo: str) -> str | None:
    """The first processor's name in the text of /proc/cpuinfo; absent on some architectures."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == "model name"), None)


def _cpu_model() -> str:
    return cpu_model_in(Path("/proc/cpuinfo").read_text(encoding="utf-8")) or platform.machine()


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


@cache
def _git(*words: str) -> str | None:
    """Git's output; None without git or a repository."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
