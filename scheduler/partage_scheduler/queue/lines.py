"""Lines of units, of which the first goes first. Who left a line otherwise stays in it as a shadow until it is met.

In a `Line` they go by anything that can be compared. In `Turns` they go by priority, and among those of one priority
namespaces take turns: next is the namespace whose pods have had the least of the scheduler's time, and in it the
oldest. So a namespace that floods the line, or writes pods that are slow to decide on, waits for itself. One that comes
back finds itself level with the others: it is owed nothing for the time in which it wanted nothing.
"""

from __future__ import annotations

from collections.abc import Container
from heapq import heapify, heappop, heappush
from typing import Any, Final

from partage_scheduler.queue.units import Unit

_FEW: Final = 64
_MOST_SPENT: Final = 4096
"""Namespaces of which it is remembered what they had, beside those that stand in line."""


class Line:
    """Units by anything that can be compared; equals go by their number."""

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, int, Unit]] = []
        self._sound = _FEW

    def push(self, unit: Unit, order: Any) -> None:  # noqa: ANN401  a time, or a place in the line
        """A unit stands here until it is elsewhere."""
        heappush(self._heap, (order, unit.number, unit.turn, unit))
        if len(self._heap) > 2 * self._sound:
            self._heap = [entry for entry in self._heap if entry[3].turn == entry[2]]
            heapify(self._heap)
            self._sound = max(_FEW, len(self._heap))

    def first(self) -> tuple[Any, Unit] | None:
        """The first with its order; None where the line is empty."""
        while self._heap:
            order, _, turn, unit = self._heap[0]
            if unit.turn == turn:
                return order, unit
            heappop(self._heap)
        return None

    def pop(self) -> Unit | None:
        found = self.first()
        if found is None:
            return None
        heappop(self._heap)
        return found[1]


class Spent:
    """How much of the scheduler's time each namespace had, as far as others had less."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, float] = {}
        self._level = 0.0
        """What the namespace had that was served last, when it was its turn."""

    def of(self, namespace: str) -> float:
        """In seconds; no less than what others had that wait."""
        return max(self._by_namespace.get(namespace, 0.0), self._level)

    def served(self, namespace: str) -> None:
        self._level = self.of(namespace)

    def add(self, namespace: str, seconds: float) -> None:
        self._by_namespace[namespace] = self.of(namespace) + seconds
        if len(self._by_namespace) > 2 * _MOST_SPENT:
            ahead = sorted(self._by_namespace.items(), key=lambda item: -item[1])[:_MOST_SPENT]
            self._by_namespace = {name: spent for name, spent in ahead if spent > self._level}


class _Level:
    """All of one priority: a line for each namespace, and whose turn it is. False where nobody is left."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self._lines: dict[str, Line] = {}
        self._turns: list[tuple[float, Any, int, str]] = []
        """By what each has had and its first. The last of a namespace counts, which may have had more since."""
        self._last: dict[str, int] = {}
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def push(self, unit: Unit) -> None:
        namespace, order = unit.namespace, unit.order
        line = self._lines.get(namespace)
        if line is None:
            line = self._lines[namespace] = Line()
        before = line.first()
        line.push(unit, order)
        if before is None or order < before[0]:
            self._turn(namespace, order)

    def pop(self, but: Container[str]) -> Unit | None:
        if len(self._lines) == 1:
            return self._alone(but)
        passed: list[tuple[float, Any, int, str]] = []
        found: Unit | None = None
        while found is None and self._turns:
            turn = heappop(self._turns)
            spent, _, number, namespace = turn
            if self._last.get(namespace) != number:
                continue
            line = self._lines[namespace]
            first = line.first()
            if first is None:
                del self._lines[namespace], self._last[namespace]
            elif namespace in but:
                passed.append(turn)
            elif self._spent.of(namespace) > spent:
                self._turn(namespace, first[0])
            else:
                self._spent.served(namespace)
                found = self._taken(namespace, line)
        for turn in passed:
            heappush(self._turns, turn)
        return found

    def _alone(self, but: Container[str]) -> Unit | None:
        """The next where there is one namespace only; its turn stays."""
        ((namespace, line),) = self._lines.items()
        if namespace in but:
            return None
        unit = line.pop()
        if unit is None:
            del self._lines[namespace], self._last[namespace]
        else:
            self._spent.served(namespace)
        return unit

    def _taken(self, namespace: str, line: Line) -> Unit | None:
        unit, left = line.pop(), line.first()
        if left is None:
            del self._lines[namespace], self._last[namespace]
        else:
            self._turn(namespace, left[0])
        return unit

    def _turn(self, namespace: str, order: Any) -> None:  # noqa: ANN401  a place in the line
        self._number += 1
        self._last[namespace] = self._number
        heappush(self._turns, (self._spent.of(namespace), order, self._number, namespace))
        if len(self._turns) > 2 * len(self._lines) + _FEW:
            self._turns = [each for each in self._turns if self._last.get(each[3]) == each[2]]
            heapify(self._turns)


class Turns:
    """Units by priority, and by turns of their namespaces."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self._levels: dict[int, _Level] = {}

    def push(self, unit: Unit) -> None:
        """A unit stands here until it is elsewhere."""
        priority = unit.order[0]
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = _Level(self._spent)
        level.push(unit)

    def pop(self, but: Container[str] = ()) -> Unit | None:
        """None where the line is empty, or all in it are of namespaces that are passed over."""
        for priority in sorted(self._levels):
            level = self._levels[priority]
            unit = level.pop(but)
            if unit is not None:
                return unit
            if not level:
                del self._levels[priority]
        return None
