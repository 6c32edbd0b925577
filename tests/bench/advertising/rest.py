"""What an advertiser costs while nothing happens: memory, processor time, and what it asks the API server to write.

Its own process and the one that asks NVML count together; what both map counts twice.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.advertising.place import Node, all_ok

_KIB: Final = 1 << 10
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Rest:
    seconds: float
    writes: Counter[tuple[str, str]]
    daemon_s: float
    child_s: float
    resident_mib: float

    @property
    def load(self) -> float:
        return (self.daemon_s + self.child_s) / self.seconds

    @property
    def other_writes(self) -> int:
        return sum(self.writes.values()) - self.writes["update", "leases"]


def rest(node: Node, seconds: float, *, settled_s: float) -> Rest:
    """An advertiser that was started again, has come to rest, and then is left alone."""
    node.begin_anew()
    time.sleep(settled_s)
    daemon, child = node.advertiser.pid, node.child_pid
    resident = [_resident_mib(daemon) + _resident_mib(child)]
    node.audit.begin()
    began = time.monotonic()
    spent = [_spent_s(pid) for pid in (daemon, child)]
    time.sleep(seconds)
    took = time.monotonic() - began
    daemon_s, child_s = (_spent_s(pid) - before for pid, before in zip((daemon, child), spent, strict=True))
    resident.append(_resident_mib(daemon) + _resident_mib(child))
    node.seen(all_ok)
    return Rest(took, node.audit.writes(), daemon_s, child_s, max(resident))


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / _KIB


def _spent_s(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / _TICKS_PER_S
