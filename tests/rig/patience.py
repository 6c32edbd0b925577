"""The timeout of waits for events that must happen, and their error report.

A wait's base is in seconds on an otherwise idle machine. Each second of the clock counts by the fraction of CPU time
that a runnable process got, but at least a quarter. So waits last longer on a busy machine, even if it became busy
during the wait, and no wait lasts longer than four times its base.
"""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from rig.errors import NeverHappened

PATIENCE_S: Final = 90.0
MOST: Final = 4.0
"""A wait lasts at most this many times its base."""

TAIL_LINES: Final = 15
_READ_EVERY_S: Final = 0.05
_TAIL_WIDTH: Final = 300
_STOLEN: Final = 8
"""Index of `steal` in the first line of /proc/stat."""


@dataclass(frozen=True)
class Strain:
    """Factors that kept processes from running."""

    load: float
    """Runnable processes for each core: the kernel's average of the last minute."""
    short: float
    """Fraction of the time in which some process waited for a processor."""
    stolen: float
    """Fraction of the processors' time that the hypervisor gave to others."""

    @property
    def given(self) -> float:
        """Fraction of CPU time that a runnable process got."""
        return max(1 / MOST, min(1 / max(1.0, self.load), 1 - self.short) * (1 - self.stolen))

    def __str__(self) -> str:
        return (
            f"load {self.load:.1f} a core, short of processors {self.short:.0%} of the time, {self.stolen:.0%} stolen"
        )


@dataclass(frozen=True)
class Reading:
    """The kernel's counters at one moment; times are sums since boot."""

    at_s: float
    load: float
    short_s: float
    stolen_s: float

    def strain_since(self, before: Reading) -> Strain:
        elapsed_s = self.at_s - before.at_s
        if elapsed_s <= 0:
            return Strain(self.load, 0, 0)
        short, stolen = (self.short_s - before.short_s) / elapsed_s, (self.stolen_s - before.stolen_s) / elapsed_s
        return Strain(self.load, min(max(short, 0), 1), min(max(stolen, 0), 1))


def reading() -> Reading:
    cores = os.cpu_count() or 1
    return Reading(time.monotonic(), os.getloadavg()[0] / cores, _short_s(), _stolen_s() / cores)


def _short_s() -> float:
    """CPU pressure so far; 0 if the kernel does not measure it."""
    try:
        found = re.search(r"^some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1e6 if found else 0.0


def _stolen_s() -> float:
    with Path("/proc/stat").open() as counters:
        return int(counters.readline().split()[_STOLEN]) / os.sysconf("SC_CLK_TCK")


class Wait:
    """One wait, starting now."""

    def __init__(self, base_s: float = PATIENCE_S, read: Callable[[], Reading] = reading) -> None:
        self._base_s = base_s
        self._read = read
        self._counted_s = 0.0
        self._began = self._last = read()

    def left_s(self) -> float:
        """A lower bound of the remaining time; 0 when it is over. It may be called at any rate."""
        if time.monotonic() - self._last.at_s >= _READ_EVERY_S:
            now = self._read()
            self._counted_s += (now.at_s - self._last.at_s) * now.strain_since(self._last).given
            self._last = now
        return max(0.0, self._base_s - self._counted_s)

    def __str__(self) -> str:
        elapsed_s = self._last.at_s - self._began.at_s
        return f"{elapsed_s:.0f} s ({self._base_s:g} s, and {self._last.strain_since(self._began)})"


_BEGAN: Final = reading()


def patience_s(base_s: float = PATIENCE_S) -> float:
    """A timeout for a call that waits by itself, from the machine's load between this process's start and now."""
    return base_s / reading().strain_since(_BEGAN).given


class Logged(Protocol):
    def tail(self) -> str: ...


@dataclass(frozen=True)
class Log:
    name: str
    path: Path

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The end of the log, with its name."""
        try:
            whole = self.path.read_text(errors="replace").splitlines()
            text = [line if len(line) <= _TAIL_WIDTH else line[:_TAIL_WIDTH] + "…" for line in whole[-lines:]]
        except FileNotFoundError:
            text = ["(it wrote nothing)"]
        return "\n".join([f"--- {self.name}, {self.path}:", *text])


What = str | Callable[[], object]
"""The subject of a wait: a text, or a condition whose source is shown."""


def in_vain(what: What, last: object, wait: Wait, logs: Iterable[Logged] = ()) -> NeverHappened:
    """The error of a wait: its subject, the last state seen, the machine's load, and the related logs."""
    text = f"{what if isinstance(what, str) else _source(what)}: not within {wait}; last seen: {last}"
    return NeverHappened("\n".join([text, *(log.tail() for log in logs)]))


def _source(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
