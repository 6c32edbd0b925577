"""Who may take how many rows of the file. Pure.

Whoever has more than a part of what is free gets no more, so there is room for whoever comes, however many take all
that they may. Rows without which a process can't begin count by themselves, and have a reserve: what is said of shared
memory is never in their way.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import Final

OWNER_PART: Final = 32
"""One part in so many of what is free is one container's; of what is said of shared memory, one budget's."""
NAMESPACE_PART: Final = 8
RESERVE: Final = 4096
"""For processes, and for what they have of a card."""
LEAST: Final = 16
"""Of those each container may have as many, as long as any row is free."""


class Sort(IntEnum):
    PROCESS = 1
    PIECE = 2


Counts = Counter[tuple[str, Sort]]


class RowBounds:
    """Owners are containers and budgets, by their keys."""

    def __init__(self) -> None:
        self.refused = 0
        """How often there was a row, and not for who wanted it."""
        self._of_owners, self._of_namespaces = Counts(), Counts()
        self._namespaces: dict[str, str] = {}

    def belongs(self, owner: str, namespace: str) -> None:
        """Of which namespace it is; of none: it counts as one of its own, as until it is told."""
        taken = {sort: self._of_owners[owner, sort] for sort in Sort}
        for sort, rows in taken.items():
            _add(self._of_namespaces, (self._namespace(owner), sort), -rows)
        if namespace:
            self._namespaces[owner] = namespace
        else:
            self._namespaces.pop(owner, None)
        for sort, rows in taken.items():
            _add(self._of_namespaces, (self._namespace(owner), sort), rows)

    def has(self, owner: str, sort: Sort, free: int) -> bool:
        """Whether there is one more, where so many are free."""
        of_owner = self._of_owners[owner, sort]
        if sort is Sort.PROCESS and of_owner < LEAST:
            return free > 0
        is_any = free > 0
        free -= RESERVE if sort is Sort.PIECE else 0
        of_namespace = self._of_namespaces[self._namespace(owner), sort]
        has_one = of_owner * OWNER_PART < free and of_namespace * NAMESPACE_PART < free
        self.refused += is_any and not has_one
        return has_one

    def takes(self, owner: str, sort: Sort, rows: int = 1) -> None:
        """So many more; negative: fewer."""
        _add(self._of_owners, (owner, sort), rows)
        _add(self._of_namespaces, (self._namespace(owner), sort), rows)

    def _namespace(self, owner: str) -> str:
        return self._namespaces.get(owner, f"/{owner}")  # no namespace has such a name


def _add(counts: Counts, key: tuple[str, Sort], rows: int) -> None:
    counts[key] += rows
    if not counts[key]:
        del counts[key]
