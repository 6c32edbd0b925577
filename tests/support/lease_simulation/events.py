"""Simulated time: what happens next happens now. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable


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
