"""How often something may be done: so often in a second in the long run, and some at once after a rest. Pure."""

from __future__ import annotations


class Pace:
    """Of one thing."""

    def __init__(self, a_second: float, *, at_once: int) -> None:
        self._every_s, self._ahead_s = 1 / a_second, (at_once - 1) / a_second
        self._used_until = float("-inf")

    @property
    def due(self) -> float:
        """From when on it may be done again."""
        return self._used_until - self._ahead_s

    def done(self, now: float) -> None:
        """It was done once more."""
        self._used_until = max(now, self._used_until) + self._every_s
