"""Answers that are remembered within a number of bytes, whatever was asked and however large the answers are.

Questions are made by users, so neither their number nor a bound on their number says how much memory they take. Who
puts an answer in says how many bytes it holds; what was not asked for longest goes first. An answer that is larger than
all that may be kept is not kept. `structure_bytes` is for answers that were read from a text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ENTRY_BYTES: Final = 512
"""What an entry takes beside its answer: its place, its key, and the objects around them."""
_A_CHARACTER: Final = 16
"""Bytes of memory for a byte of text, where all of the text is short words in small objects."""


def structure_bytes(text_bytes: int) -> int:
    """How much memory something takes at most that was read from so long a text."""
    return _A_CHARACTER * text_bytes


class Cache(Generic[K, V]):
    """Of one sort of answers."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0
        """What is kept now, by the account of those who put it in."""

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: K) -> V | None:
        """The answer, which is now the one that was asked for last."""
        found = self._answers.get(key)
        if found is None:
            return None
        self._answers.move_to_end(key)
        return found[0]

    def put(self, key: K, answer: V, size_bytes: int) -> list[V]:
        """Keeps an answer of that size; what had to go for it."""
        self.pop(key)
        size_bytes += ENTRY_BYTES
        if size_bytes > self._most_bytes:
            return [answer]
        gone: list[V] = []
        while self.bytes + size_bytes > self._most_bytes:
            gone.append(self._oldest())
        self._answers[key] = answer, size_bytes
        self.bytes += size_bytes
        return gone

    def pop(self, key: K) -> V | None:
        """Forgets an answer; what it was."""
        found = self._answers.pop(key, None)
        if found is None:
            return None
        self.bytes -= found[1]
        return found[0]

    def clear(self) -> None:
        """Forgets all answers and what they took."""
        self._answers.clear()
        self.bytes = 0

    def items(self) -> Iterator[tuple[K, V]]:
        """All, those first that were not asked for longest."""
        return ((key, answer) for key, (answer, _) in self._answers.items())

    def values(self) -> Iterator[V]:
        """The answers without their questions, the oldest first."""
        return (answer for answer, _ in self._answers.values())

    def _oldest(self) -> V:
        _, (answer, size_bytes) = self._answers.popitem(last=False)
        self.bytes -= size_bytes
        return answer
