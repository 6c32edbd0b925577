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


def waited_s(pid: int) -> float:
    """How long its main thread was ready to run and had no processor: the fault of a machine that is full."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def descriptors(pid: int) -> int:
    """How many it has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  entries may vanish meanwhile


def status(pid: int, field: str) -> int:
    """A number of its status; of memory they are KiB. `ProcessLookupError` where one that has ended has none."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise ProcessLookupError(f"process {pid} has no {field} any more")


def _stat(pid: int) -> list[str]:
    """From the state on: a name before it may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
