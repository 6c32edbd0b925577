"""The broker goes before ordinary programs, and no further: each turn of a card waits for it.

A niceness counts only within a control group, and a node has many. So its threads ask for round robin at the lowest
real-time priority: all of them, since the thread that answers waits for the one that holds the interpreter. That is no
danger to the node: after a second without a pause they are ordinary ones again, and where even that can't be
done the kernel ends the process four seconds later. A child is made ordinary by the process that starts it: an
interpreter may compute for a second without a pause while it starts.
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
"""Processor time; a broker pauses each few milliseconds."""
ENDS_AFTER_US: Final = 5_000_000


def go_first(on_surrender: Callable[[], None]) -> str | None:
    """Returns why that is refused: no right, or no time for such threads in our control group."""
    before = signal.signal(signal.SIGXCPU, lambda _number, _frame: _surrender(on_surrender))
    try:
        _bound()
        _all_threads(os.SCHED_RR, PRIORITY)
    except (OSError, ValueError) as error:
        signal.signal(signal.SIGXCPU, before)
        return str(error)
    return None


def goes_as_others(child: int) -> None:
    """A process that has just been started has its parent's priority, and no more threads than one."""
    with suppress(ProcessLookupError):
        os.sched_setscheduler(child, os.SCHED_OTHER, os.sched_param(0))


def _bound() -> None:
    """Lower than they are, whatever they are."""
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
"""RLIMIT_RTTIME, for which Python has no name: microseconds of a real-time thread's processor without a pause."""
