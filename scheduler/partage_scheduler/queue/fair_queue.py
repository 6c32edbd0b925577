"""Priority queues of pods and gangs. A group that moves elsewhere leaves a stale entry, which is skipped when met.

A `Heap` is ordered by any comparable key. `FairQueue` is ordered by priority, and within one priority namespaces take
turns: next is the namespace whose pods have used the least of the scheduler's time, and in it the oldest pod. So a
namespace that floods the queue, or writes pods that are slow to decide on, delays only itself. A namespace that comes
back starts level with the others: it has no credit for the time in which it had no pods waiting.
"""

from __future__ import annotations

from collections.abc import Container
from heapq import heapify, heappop, heappush
from typing import Any, Final

from partage_scheduler.queue.groups import QueuedGroup

_FEW: Final = 64
_MOST_SPENT: Final = 4096
"""Namespaces whose used time is remembered, beside those with pods in the queue."""


class Heap:
    """Units by any comparable key; ties are ordered by their number."""

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, int, QueuedGroup]] = []
        self._sound = _FEW

    def push(self, group: QueuedGroup, order: Any) -> None:  # noqa: ANN401  a time, or a place in the line
        """Adds an entry, which is valid until the unit moves elsewhere."""
        heappush(self._heap, (order, group.number, group.turn, group))
        if len(self._heap) > 2 * self._sound:
            self._heap = [entry for entry in self._heap if entry[3].turn == entry[2]]
            heapify(self._heap)
            self._sound = max(_FEW, len(self._heap))

    def first(self) -> tuple[Any, QueuedGroup] | None:
        """The first unit with its key; None if the line is empty."""
        while self._heap:
            order, _, turn, group = self._heap[0]
            if group.turn == turn:
                return order, group
            heappop(self._heap)
        return None

    def pop(self) -> QueuedGroup | None:
        found = self.first()
        if found is None:
            return None
        heappop(self._heap)
        return found[1]


class Spent:
    """Scheduler time that each namespace has used, as far as others used less."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, float] = {}
        self._level = 0.0
        """Time that the namespace served last had used when it was served."""

    def of(self, namespace: str) -> float:
        """Used time in seconds; at least that of the namespace served last."""
        return max(self._by_namespace.get(namespace, 0.0), self._level)

    def served(self, namespace: str) -> None:
        self._level = self.of(namespace)

    def add(self, namespace: str, seconds: float) -> None:
        self._by_namespace[namespace] = self.of(namespace) + seconds
        if len(self._by_namespace) > 2 * _MOST_SPENT:
            ahead = sorted(self._by_namespace.items(), key=lambda item: -item[1])[:_MOST_SPENT]
            self._by_namespace = {name: spent for name, spent in ahead if spent > self._level}


class _Level:
    """All units of one priority: a line per namespace, and the order of namespaces. False if none is left."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self._lines: dict[str, Heap] = {}
        self._turns: list[tuple[float, Any, int, str]] = []
        """Namespaces by used time and first unit. The newest entry of each counts; its used time may have grown."""
        self._last: dict[str, int] = {}
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def push(self, group: QueuedGroup) -> None:
        namespace, order = group.namespace, group.order
        line = self._lines.get(namespace)
        if line is None:
            line = self._lines[namespace] = Heap()
        before = line.first()
        line.push(group, order)
        if before is None or order < before[0]:
            self._turn(namespace, order)

    def pop(self, but: Container[str]) -> QueuedGroup | None:
        if len(self._lines) == 1:
            return self._alone(but)
        passed: list[tuple[float, Any, int, str]] = []
        found: QueuedGroup | None = None
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

    def _alone(self, but: Container[str]) -> QueuedGroup | None:
        """The next unit if there is only one namespace, whose turn stays."""
        ((namespace, line),) = self._lines.items()
        if namespace in but:
            return None
        group = line.pop()
        if group is None:
            del self._lines[namespace], self._last[namespace]
        else:
            self._spent.served(namespace)
        return group

    def _taken(self, namespace: str, line: Heap) -> QueuedGroup | None:
        group, left = line.pop(), line.first()
        if left is None:
            del self._lines[namespace], self._last[namespace]
        else:
            self._turn(namespace, left[0])
        return group

    def _turn(self, namespace: str, order: Any) -> None:  # noqa: ANN401  a place in the line
        self._number += 1
        self._last[namespace] = self._number
        heappush(self._turns, (self._spent.of(namespace), order, self._number, namespace))
        if len(self._turns) > 2 * len(self._lines) + _FEW:
            self._turns = [each for each in self._turns if self._last.get(each[3]) == each[2]]
            heapify(self._turns)


class FairQueue:
    """Units by priority, and then by turns of their namespaces."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self._levels: dict[int, _Level] = {}

    def push(self, group: QueuedGroup) -> None:
        """Adds an entry, which is valid until the unit moves elsewhere."""
        priority = group.order[0]
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = _Level(self._spent)
        level.push(group)

    def pop(self, but: Container[str] = ()) -> QueuedGroup | None:
        """The next unit; None if there is none, or all are of the namespaces in `but`."""
        for priority in sorted(self._levels):
            level = self._levels[priority]
            group = level.pop(but)
            if group is not None:
                return group
            if not level:
                del self._levels[priority]
        return None
