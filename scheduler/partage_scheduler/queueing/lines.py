"""Lines of units, of which the first goes first. Who left a line otherwise stays in it as a shadow until it is met."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final

from partage_scheduler.queueing.units import Unit

_FEW: Final = 64


class Line:
    """Units by anything that can be compared; equals go by their number."""

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, int, Unit]] = []
        self._sound = _FEW

    def push(self, unit: Unit, order: Any) -> None:  # noqa: ANN401  a time, or a place in the line
        """It stands here until it is elsewhere."""
        heappush(self._heap, (order, unit.number, unit.turn, unit))
        if len(self._heap) > 2 * self._sound:
            self._heap = [entry for entry in self._heap if entry[3].turn == entry[2]]
            heapify(self._heap)
            self._sound = max(_FEW, len(self._heap))

    def first(self) -> tuple[Any, Unit] | None:
        """The first with its order; None where there is nobody."""
        while self._heap:
            order, _, turn, unit = self._heap[0]
            if unit.turn == turn:
                return order, unit
            heappop(self._heap)
        return None

    def pop(self) -> Unit | None:
        """Takes the first out."""
        found = self.first()
        if found is None:
            return None
        heappop(self._heap)
        return found[1]
