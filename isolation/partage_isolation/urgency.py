"""Real-time priority for the broker, within bounds: each time slice of a card waits for it.

A nice value counts only within a cgroup, and a node has many. So the broker's threads get round robin at the lowest
real-time priority: all of them, since the thread that responds waits for the one that holds the interpreter. This can't
starve the node: after a second without a pause they become ordinary threads again, and if even that fails the kernel
kills the process four seconds later. A child is made ordinary by the process that starts it: an interpreter may compute
for a second without a pause while it starts.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

PRIORITY: Final = 1
PAUSES_WITHIN_US: Final = 1_000_000
"""Processor time; a broker pauses every few milliseconds."""
ENDS_AFTER_US: Final = 5_000_000


def go_first(on_surrender: Callable[[], None]) -> str | None:
    """Raise the priority; return why that failed: no permission, or no real-time budget in the broker's cgroup."""
    before = signal.signal(signal.SIGXCPU, lambda _number, _frame: _surrender(on_surrender))
    try:
        _bound()
        _all_threads(os.SCHED_RR, PRIORITY)
    except (OSError, ValueError) as error:
        signal.signal(signal.SIGXCPU, before)
        return str(error)
    return None


def goes_as_others(child: int) -> None:
    """Make a new child ordinary: it has inherited its parent's priority, and still has only one thread."""
    with suppress(ProcessLookupError):
        os.sched_setscheduler(child, os.SCHED_OTHER, os.sched_param(0))


def _bound() -> None:
    """Set RLIMIT_RTTIME, within the existing hard limit."""
    mine = (PAUSES_WITHIN_US, ENDS_AFTER_US)
    most = resource.getrlimit(_RTTIME)[1]
    soft, hard = (limit if most == resource.RLIM_INFINITY else min(limit, most) for limit in mine)
    resource.setrlimit(_RTTIME, (soft, hard))


def _surrender(tell: Callable[[], None]) -> None:
    _all_threads(os.SCHED_OTHER, 0)
    tell()


def _all_threads(policy: int, priority: int) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))


_RTTIME: Final = 15
"""RLIMIT_RTTIME, which Python does not name: a real-time thread's microseconds of processor time without a pause."""
