"""A least-recently-used cache that is bounded in bytes, regardless of the number of keys and the size of the values.

Users determine the keys, so a bound on their number would not bound the memory. The caller states the size of each
value in bytes; the least recently used values are evicted first. A value larger than the whole cache is not stored.
`structure_bytes` estimates the size of values that were decoded from a text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ENTRY_BYTES: Final = 512
"""Size of an entry without its value: its slot, its key, and the objects around them."""
_A_CHARACTER: Final = 16
"""Bytes of memory for each byte of text, if all of the text is short words in small objects."""


def structure_bytes(text_bytes: int) -> int:
    """Upper bound for the memory of a value that was decoded from a text of this length."""
    return _A_CHARACTER * text_bytes


class Cache(Generic[K, V]):
    """A cache for one type of values."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0
        """The total size of the entries, according to the sizes that callers stated."""

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: K) -> V | None:
        """The value, which becomes the most recently used one."""
        found = self._answers.get(key)
        if found is None:
            return None
        self._answers.move_to_end(key)
        return found[0]

    def put(self, key: K, answer: V, size_bytes: int) -> list[V]:
        """Stores a value of that size and returns the values that were evicted for it."""
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
        """Removes a value and returns it."""
        found = self._answers.pop(key, None)
        if found is None:
            return None
        self.bytes -= found[1]
        return found[0]

    def clear(self) -> None:
        """Removes all values."""
        self._answers.clear()
        self.bytes = 0

    def items(self) -> Iterator[tuple[K, V]]:
        """All entries, the least recently used first."""
        return ((key, answer) for key, (answer, _) in self._answers.items())

    def values(self) -> Iterator[V]:
        """The values without their keys, the least recently used first."""
        return (answer for answer, _ in self._answers.values())

    def _oldest(self) -> V:
        _, (answer, size_bytes) = self._answers.popitem(last=False)
        self.bytes -= size_bytes
        return answer
