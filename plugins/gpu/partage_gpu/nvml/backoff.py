"""Decides when the child process is restarted. Pure: the time is passed in.

The first failure after a long run causes no pause, so that a crash or a reloaded driver is recovered from at once.
Further failures increase the pause, up to a limit that keeps a returned driver from staying unnoticed: each start costs
a tenth of a second of processor time. A machine without the library most likely has no card and is tried less often.
"""

from __future__ import annotations

from typing import Final

from partage_gpu.nvml.facts import TroubleKind

_FIRST_S: Final = 1.0
_MOST_S: Final = 5.0
_NO_LIBRARY_MOST_S: Final = 30.0
_GOOD_WHILE_S: Final = 30.0
"""A child that ran this long did not fail at its start."""


class Backoff:
    """The restart time, computed from past failures."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forgets past failures."""
        self._failures = 0
        self._not_before = float("-inf")

    def failed(self, kind: TroubleKind, *, started: float, now: float) -> None:
        """Records that a child with that start time has ended, or was killed, now."""
        if now - started >= _GOOD_WHILE_S:
            self._failures = 0
        self._failures += 1
        self._not_before = now + self._pause_s(kind)

    @property
    def has_failed(self) -> bool:
        return self._failures > 0

    def may_start(self, now: float) -> bool:
        return now >= self._not_before

    def _pause_s(self, kind: TroubleKind) -> float:
        if self._failures == 1:
            return 0.0
        most_s = _NO_LIBRARY_MOST_S if kind == "no-library" else _MOST_S
        return float(min(most_s, _FIRST_S * 2 ** min(self._failures - 2, 10)))
