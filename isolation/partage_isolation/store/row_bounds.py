"""Bounds on the number of rows that each owner may take. Pure.

An owner of more than a fraction of the free rows gets no more, so there is room for newcomers, however many owners take
their maximum. Rows that a process needs to begin are counted separately and have a reserve, so that rows of shared
memory never block them.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import Final

OWNER_PART: Final = 32
"""One part in this many of the free rows is the limit for a container; for shared memory, for a budget."""
NAMESPACE_PART: Final = 8
RESERVE: Final = 4096
"""Rows reserved for processes and their accounts."""
LEAST: Final = 16
"""Rows that each container gets as long as any row is free."""


class Sort(IntEnum):
    PROCESS = 1
    PIECE = 2


Counts = Counter[tuple[str, Sort]]


class RowBounds:
    """Owners are containers and budgets, by their keys."""

    def __init__(self) -> None:
        self.refused = 0
        """Number of refusals although a row was free."""
        self._of_owners, self._of_namespaces = Counts(), Counts()
        self._namespaces: dict[str, str] = {}

    def belongs(self, owner: str, namespace: str) -> None:
        """Set the owner's namespace; if empty or not set, the owner counts as a namespace of its own."""
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
        """Whether the owner may take one more of this many free rows."""
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
        """Count rows that the owner took; negative for returned ones."""
        _add(self._of_owners, (owner, sort), rows)
        _add(self._of_namespaces, (self._namespace(owner), sort), rows)

    def _namespace(self, owner: str) -> str:
        return self._namespaces.get(owner, f"/{owner}")  # no namespace has such a name


def _add(counts: Counts, key: tuple[str, Sort], rows: int) -> None:
    counts[key] += rows
    if not counts[key]:
        del counts[key]
