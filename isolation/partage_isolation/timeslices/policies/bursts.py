"""Prediction of a container's next burst of work, as Gemini's client does it. Pure.

A burst is work between two pauses of a program; a pause of 2 ms or less does not end it. The prediction is the longest
burst of the last three seconds. If all pauses were that short, a burst may be incomplete and counts twice.

The broker sees the bursts after which a container is idle. A burst that the token's end cuts off is ignored, as
Gemini's authors describe. Their code treats such a burst as complete and doubles it, so the tokens of a program that
never pauses would grow to the whole window.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.timeslices.durations import MS, SECOND

MERGED_NS: Final = 2 * MS
KEPT_NS: Final = 3 * SECOND


@dataclass(slots=True)
class Longest:
    """Maximum of the lengths noted in the last three seconds."""

    _noted: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    """Time and length; each shorter than the one before, since no other can become the maximum."""

    def note(self, length: int, now: int) -> None:
        while self._noted and self._noted[-1][1] <= length:
            self._noted.pop()
        self._noted.append((now, length))

    def at(self, now: int) -> int:
        while self._noted and now - self._noted[0][0] > KEPT_NS:
            self._noted.popleft()
        return self._noted[0][1] if self._noted else 0


@dataclass(slots=True)
class Bursts:
    _bursts: Longest = field(default_factory=Longest)
    _pauses: Longest = field(default_factory=Longest)
    _began: int = 0
    _ended: int | None = None
    """End of the last burst; None if it was cut off, or there was none."""

    def ended(self, began: int, now: int) -> None:
        if self._ended is None or began - self._ended > MERGED_NS:
            self._began = began
        self._ended = now
        self._bursts.note(now - self._began, now)

    def cut_off(self) -> None:
        self._ended = None

    def paused(self, since: int, now: int) -> None:
        self._pauses.note(now - since, now)

    def expected_ns(self, now: int) -> int:
        """The predicted burst, or 0 if none was seen to end."""
        burst = self._bursts.at(now)
        return burst if self._pauses.at(now) >= MERGED_NS else 2 * burst
