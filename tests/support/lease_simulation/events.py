"""Simulated time, and chance that is the same each time. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

_MASK: Final = (1 << 64) - 1


class Chance:
    """A small generator (splitmix64) with a seed."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, most: int) -> int:
        """0 or more, less than that."""
        self._state = self._state + 0x9E3779B97F4A7C15 & _MASK
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return (mixed ^ mixed >> 31) % most

    def fork(self) -> Chance:
        """Another one that does not depend on how often this one is asked later."""
        return Chance(self.below(1 << 63))


class Events:
    """Things that are to happen; those of one time in the order in which they were planned."""

    __slots__ = ("_heap", "_number", "now")

    def __init__(self, now: int) -> None:
        self.now = now
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, when: int, what: Callable[[], None]) -> None:
        """It happens then, or now if that is over."""
        self._number += 1
        heapq.heappush(self._heap, (max(when, self.now), self._number, what))

    def run_until(self, end: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= end:
            self.now, _, what = heapq.heappop(heap)
            what()
        self.now = end
