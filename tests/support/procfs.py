"""What the kernel says of a process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def lives(pid: int) -> bool:
    """A zombie does not: an orphan is reaped by its new parent, for which no test waits."""
    try:
        return _stat(pid)[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_s(pid: int) -> float:
    """Time on a processor so far."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def descriptors(pid: int) -> int:
    """How many it has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  entries may vanish meanwhile


def status(pid: int, field: str) -> int:
    """A number of its status; of memory they are KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _stat(pid: int) -> list[str]:
    """From the state on: a name before it may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
