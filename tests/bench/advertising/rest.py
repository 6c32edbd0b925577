"""What an advertiser costs while nothing happens: memory, processor time, and what it asks the API server to write.

Its own process and the one that asks NVML count together; what both map counts twice.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from bench.advertising.place import Node, all_ok
from support.procfs import cpu_s, status

_KIB: Final = 1 << 10


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
    resident = [(status(daemon, "VmRSS") + status(child, "VmRSS")) / _KIB]
    node.audit.begin()
    began = time.monotonic()
    spent = [cpu_s(pid) for pid in (daemon, child)]
    time.sleep(seconds)
    took = time.monotonic() - began
    daemon_s, child_s = (cpu_s(pid) - before for pid, before in zip((daemon, child), spent, strict=True))
    resident.append((status(daemon, "VmRSS") + status(child, "VmRSS")) / _KIB)
    node.seen(all_ok)
    return Rest(took, node.audit.writes(), daemon_s, child_s, max(resident))
