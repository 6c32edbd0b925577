"""Who waits for a place, and who may try when something became free: first come, first served. Pure.

The first that does not fit keeps those behind it waiting, so that a large one gets its turn. One whose obstacle stays,
whatever becomes free, keeps no one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from partage_oci.shortage import NoRoom

T = TypeVar("T")
K = TypeVar("K")
R = TypeVar("R")


class Queue(Generic[K, T]):
    def __init__(self) -> None:
        self._waiting: dict[K, T] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: K) -> bool:
        return key in self._waiting

    def join(self, key: K, wants: T) -> None:
        """At the end; one that waits already keeps its turn."""
        self._waiting.setdefault(key, wants)

    def leave(self, key: K) -> None:
        """Got what it waited for, or waits no more."""
        self._waiting.pop(key, None)

    def served(self, attempt: Callable[[T], R | NoRoom]) -> Iterator[tuple[K, R]]:
        """Those who get their place now, each with what its attempt gave; they have left."""
        for key, wants in tuple(self._waiting.items()):
            found = attempt(wants)
            if not isinstance(found, NoRoom):
                self.leave(key)
                yield key, found
            elif not found.lasts:
                return
