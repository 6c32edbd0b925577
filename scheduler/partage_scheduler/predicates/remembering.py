"""What was derived from all nodes, kept until one of them changes: equal pods ask equal things."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from partage_scheduler.predicates.nodes import Nodes

T = TypeVar("T")
ANSWERS: Final = 1024


class Remembered(Generic[T]):
    """Answers by question; all are forgotten when nodes change, or when there are too many."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._version = -1
        self._answers: dict[Hashable, T] = {}

    def forget(self) -> None:
        """Something else that answers depend on has changed."""
        self._answers.clear()

    def of(self, question: Hashable, answer: Callable[[], T]) -> T:
        """The answer, which nobody may change."""
        if self._version != self._nodes.version or len(self._answers) >= ANSWERS:
            self._answers.clear()
            self._version = self._nodes.version
        found = self._answers.get(question)
        if found is None:
            found = self._answers[question] = answer()
        return found
