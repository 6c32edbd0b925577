"""Simulated time, and deterministic random numbers. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

_MASK: Final = (1 << 64) - 1


class Chance:
    """A small seeded generator (splitmix64)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, most: int) -> int:
        """A number from 0 to `most` - 1."""
        self._state = self._state + 0x9E3779B97F4A7C15 & _MASK
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return (mixed ^ mixed >> 31) % most

    def fork(self) -> Chance:
        """A generator that is independent of later calls of this one."""
        return Chance(self.below(1 << 63))


class Events:
    """The event queue; simultaneous events run in the order in which they were added."""

    __slots__ = ("_heap", "_number", "now")

    def __init__(self, now: int) -> None:
        self.now = now
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, when: int, what: Callable[[], None]) -> None:
        """Schedule `what` at that time, or now if it has passed."""
        self._number += 1
        heapq.heappush(self._heap, (max(when, self.now), self._number, what))

    def run_until(self, end: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= end:
            self.now, _, what = heapq.heappop(heap)
            what()
        self.now = end
