"""How long what fails again and again must wait: 100 ms, doubling to a minute; from the beginning after 10 s.

Pure. Kept in memory alone: a manager that starts again tries at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIRST_S: Final = 0.1
MOST_S: Final = 60.0
RAN_WELL_S: Final = 10.0


class BackOff:
    """Of one pod: its sandbox and its containers, by name."""

    def __init__(self) -> None:
        self._delays: dict[str, float] = {}
        self._due: dict[str, float] = {}

    @property
    def due(self) -> Mapping[str, float]:
        return self._due

    def ended(self, name: str, ran_s: float, now: float) -> None:
        """It ran for so long, or not at all, and ended."""
        delay_s = FIRST_S if ran_s >= RAN_WELL_S else min(MOST_S, 2 * self._delays.get(name, FIRST_S / 2))
        self._delays[name] = delay_s
        self._due[name] = now + delay_s

    def forget(self) -> None:
        """A person starts it: at once."""
        self._delays.clear()
        self._due.clear()
