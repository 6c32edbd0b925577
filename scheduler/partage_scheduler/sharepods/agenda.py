"""Whose turn it is. What changed has its turn at once; what failed rests, longer each time, whatever is new of it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from partage_scheduler.sharepods.objects import Key

FIRST_REST_S: Final = 0.5
LONGEST_REST_S: Final = 60.0


class Agenda:
    """Pure: times are what callers say."""

    def __init__(self) -> None:
        self._ready: OrderedDict[Key, None] = OrderedDict()
        self._resting: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        if key not in self._resting:
            self._ready[key] = None

    def next(self, now: float) -> Key | None:
        """The one that waits longest; it waits no more."""
        for key in [key for key, until in self._resting.items() if until <= now]:
            del self._resting[key]
            self._ready[key] = None
        return self._ready.popitem(last=False)[0] if self._ready else None

    def due(self, now: float) -> float | None:
        """When there is one; None where that takes news."""
        return now if self._ready else min(self._resting.values(), default=None)

    def went_well(self, key: Key) -> None:
        self._failures.pop(key, None)

    def failed(self, key: Key, now: float) -> None:
        count = self._failures[key] = min(self._failures.get(key, 0) + 1, 16)
        self._ready.pop(key, None)
        self._resting[key] = now + min(LONGEST_REST_S, FIRST_REST_S * 2 ** (count - 1))

    def forget(self, key: Key) -> None:
        for each in (self._ready, self._resting, self._failures):
            each.pop(key, None)
