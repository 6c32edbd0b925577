"""The thread that answers goes before ordinary programs, and no further: each turn of a card waits for it.

A niceness counts only within a control group, and a node has many. So the thread asks for round robin at the lowest
real-time priority. It is no danger to the node by that: after a second without a pause it is an ordinary one again, and
where it can't even do that the kernel ends the process five seconds later. Threads and children are ordinary ones.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Final

PRIORITY: Final = 1
PAUSES_WITHIN_US: Final = 1_000_000
"""Processor time; a broker pauses each few milliseconds."""
ENDS_AFTER_US: Final = 5_000_000


def go_first(on_surrender: Callable[[], None]) -> str | None:
    """Returns why that is not to be had: no right, or no time for such threads in our control group."""
    before = signal.signal(signal.SIGXCPU, lambda _number, _frame: _surrender(on_surrender))
    try:
        _bound()
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except (OSError, ValueError) as error:
        signal.signal(signal.SIGXCPU, before)
        return str(error)
    return None


def _bound() -> None:
    """Lower than they are, whatever they are."""
    mine = (PAUSES_WITHIN_US, ENDS_AFTER_US)
    most = resource.getrlimit(_RTTIME)[1]
    soft, hard = (limit if most == resource.RLIM_INFINITY else min(limit, most) for limit in mine)
    resource.setrlimit(_RTTIME, (soft, hard))


def _surrender(tell: Callable[[], None]) -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    tell()


_RTTIME: Final = 15
"""RLIMIT_RTTIME, for which Python has no name: microseconds of a real-time thread's processor without a pause."""
