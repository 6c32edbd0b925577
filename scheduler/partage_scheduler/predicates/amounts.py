"""What nodes have to give beside CPU and memory: places for pods, ephemeral storage, huge pages, extended resources.

Free is what a node can allocate less what all pods on it ask for, whoever placed them; it may be less than nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_scheduler.deciding import Barred
from partage_scheduler.deciding.arrays import grown
from partage_scheduler.objects import ApiNode
from partage_scheduler.predicates.asking import CPU, MEMORY, counted

TOO_MANY_PODS: Final = "Too many pods"
PODS: Final = "pods"
_UNCOUNTED: Final = frozenset((CPU, MEMORY))


class Rest:
    """What is free of everything that the decider does not count itself."""

    def __init__(self) -> None:
        self._end = 0
        self._allocatable: dict[int, dict[str, int]] = {}
        self._free: dict[str, NDArray[np.int64]] = {}

    def put(self, slot: int, node: ApiNode) -> None:
        """This is the node in that slot, as it is now."""
        found = counted(node.status.allocatable, unreadable=0)
        now = {name: most for name, most in found.items() if name not in _UNCOUNTED}
        before = self._allocatable.get(slot, {})
        self._allocatable[slot] = now
        self._end = max(self._end, slot + 1)
        if now != before:
            for name in now.keys() | before.keys():
                self._give(slot, name, now.get(name, 0) - before.get(name, 0))

    def remove(self, slot: int) -> None:
        """There is no node in that slot any more; its pods were taken off before."""
        for name, most in self._allocatable.pop(slot, {}).items():
            self._give(slot, name, -most)

    def take(self, slot: int, asked: Mapping[str, int]) -> None:
        """One more pod is on that node, which asks for this."""
        self._give(slot, PODS, -1)
        for name, number in asked.items():
            self._give(slot, name, -number)

    def give_back(self, slot: int, asked: Mapping[str, int]) -> None:
        """One pod less."""
        self._give(slot, PODS, 1)
        for name, number in asked.items():
            self._give(slot, name, number)

    def barred(self, asked: Mapping[str, int], end: int) -> list[Barred]:
        """Where there is not enough for another pod that asks for this."""
        found = [self._too_small(PODS, 1, TOO_MANY_PODS, end)]
        found += [self._too_small(name, number, f"Insufficient {name}", end) for name, number in asked.items()]
        return [each for each in found if each is not None]

    def _too_small(self, name: str, number: int, reason: str, end: int) -> Barred | None:
        free = self._free.get(name)
        if free is None:
            return Barred(reason, np.ones(end, dtype=np.bool_))
        lacking = free[:end] < number
        if free.size < end:
            lacking = np.concatenate([lacking, np.ones(end - free.size, dtype=np.bool_)])
        return Barred(reason, lacking) if lacking.any() else None

    def _give(self, slot: int, name: str, number: int) -> None:
        free = self._free.get(name)
        if free is None or free.size <= slot:
            free = np.zeros(0, dtype=np.int64) if free is None else free
            free = self._free[name] = grown(free, slot + 1, 0)
        free[slot] += number
