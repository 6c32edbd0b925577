"""Repeats a measurement until the machine was otherwise idle."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from bench.measuring.surroundings import time_now
from support.procfs import cpu_s

MOST_FOREIGN: Final = 0.02
_TRIES: Final = 8
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_IDLE: Final = (3, 4)
"""Columns of /proc/stat for an idle processor: idle, and waiting for a disk."""
_BUSY: Final = 8
"""Columns that count; guests' columns are contained in others."""


T = TypeVar("T")


class Measured(NamedTuple, Generic[T]):
    told: T
    foreign: float


def quietly(measure: Callable[[], T], *, daemons: Sequence[int], judged: bool) -> Measured[T]:
    """The first undisturbed run; the quietest if there was none, or if nothing is judged."""
    quietest: Measured[T] | None = None
    for _ in range(_TRIES if judged else 1):
        found = _once(measure, daemons)
        if quietest is None or found.foreign < quietest.foreign:
            quietest = found
        if quietest.foreign <= MOST_FOREIGN:
            break
    assert quietest is not None
    return quietest


def _once(measure: Callable[[], T], daemons: Sequence[int]) -> Measured[T]:
    began, machine, ours, stolen = time.monotonic(), _machine_s(), _ours_s(daemons), time_now()
    told = measure()
    if os.sched_getscheduler(0) in {os.SCHED_FIFO, os.SCHED_RR}:  # others here only get what we leave
        return Measured(told, time_now().stolen_since(stolen))
    foreign_s = (_machine_s() - machine) - (_ours_s(daemons) - ours)
    return Measured(told, max(0.0, foreign_s) / ((time.monotonic() - began) * (os.cpu_count() or 1)))


def _machine_s() -> float:
    columns = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1 : 1 + _BUSY]]
    return sum(ticks for column, ticks in enumerate(columns) if column not in _IDLE) / _TICKS_PER_S


def _ours_s(daemons: Sequence[int]) -> float:
    """Processor time of this process, of children that have ended, and of daemons."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent) + sum(map(cpu_s, daemons))
