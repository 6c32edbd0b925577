"""The machine's idle time during each part of a run: waits on a saturated machine prove nothing about a scheduler."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

EVERY_S: Final = 0.1
_IDLE: Final = slice(3, 5)
_STOLEN: Final = 7
_WHOLE: Final = slice(0, 8)


def _ticks() -> list[int]:
    return [int(each) for each in Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0].split()[1:]]


@dataclass(frozen=True)
class Part:
    idle: float
    stolen: float
    worst_lag_s: float
    """The soak's own delay; its measured waits may be too long by this much."""


@dataclass
class Machine:
    parts: list[Part] = field(default_factory=list[Part])
    _before: list[int] = field(default_factory=_ticks)
    _worst_lag_s: float = 0.0

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(EVERY_S)
            self._worst_lag_s = max(self._worst_lag_s, time.monotonic() - began - EVERY_S)

    def turn(self) -> None:
        now = _ticks()
        spent = [after - before for before, after in zip(self._before, now, strict=True)]
        whole = max(1, sum(spent[_WHOLE]))
        self.parts.append(Part(sum(spent[_IDLE]) / whole, spent[_STOLEN] / whole, self._worst_lag_s))
        self._before, self._worst_lag_s = now, 0.0
