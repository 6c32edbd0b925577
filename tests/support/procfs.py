"""Facts about a process from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def lives(pid: int) -> bool:
    """Whether it is alive. A zombie is not: orphans are reaped by their new parent, and no test waits for that."""
    try:
        return _stat(pid)[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cpu_s(pid: int) -> float:
    """CPU time so far."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def waited_s(pid: int) -> float:
    """Time that its main thread was runnable without a processor, as on an overloaded machine."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def descriptors(pid: int) -> int:
    """Number of open descriptors."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  entries may vanish meanwhile


def status(pid: int, field: str) -> int:
    """A number of its status, KiB for memory. Raises `ProcessLookupError` if the process has ended and lacks it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise ProcessLookupError(f"process {pid} has no {field} any more")


def _stat(pid: int) -> list[str]:
    """The fields from the state on; the name before it may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
