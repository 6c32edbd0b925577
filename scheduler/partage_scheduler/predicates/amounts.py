"""Node resources other than CPU and memory: number of pods, ephemeral storage, huge pages, extended resources.

Free is a node's allocatable less the requests of all its pods, from any scheduler; it may be negative. Only non-zero
values are stored, so a name is forgotten with the last node and pod that mention it. A resource that some node has and
a pod requests gets an array over all nodes; a resource that no node has is insufficient everywhere.
"""

from __future__ import annotations

from collections import Counter as Numbers
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_plugins.cache import Cache
from partage_scheduler.decision import INSUFFICIENT, FilteredNodes
from partage_scheduler.objects import ApiNode
from partage_scheduler.predicates.counters import Counter
from partage_scheduler.predicates.needs import CPU, MEMORY, counted

TOO_MANY_PODS: Final = Reason("too-many-pods", "Too many pods")
PODS: Final = "pods"
_UNCOUNTED: Final = frozenset((CPU, MEMORY))
_ARRAY_BYTES: Final = 16 << 20


class OtherResources:
    """Free amounts of all resources that the decider does not count itself."""

    def __init__(self) -> None:
        self._allocatable: dict[int, dict[str, int]] = {}
        self._free: dict[str, dict[int, int]] = {}
        """By name and slot; only non-zero values."""
        self._having: Numbers[str] = Numbers()
        """How many nodes list each resource."""
        self._arrays = Cache[str, NDArray[np.int64]](_ARRAY_BYTES)
        self._places: dict[int, int] = {}
        self._full = Counter()
        """Nodes that can take no further pod. Every pod takes one place, and most request nothing else here."""

    def put(self, slot: int, node: ApiNode) -> None:
        found = counted(node.status.allocatable, unreadable=0)
        now = {name: most for name, most in found.items() if name not in _UNCOUNTED}
        before = self._allocatable.get(slot, {})
        self._allocatable[slot] = now
        if now != before or slot not in self._places:
            self._give_places(slot, 0)
            self._lose(before)
            self._having.update(now.keys())
            for name in now.keys() | before.keys():
                self._give(slot, name, now.get(name, 0) - before.get(name, 0))

    def remove(self, slot: int) -> None:
        gone = self._allocatable.pop(slot, {})
        self._lose(gone)
        for name, most in gone.items():
            self._give(slot, name, -most)
        if self._full.at(slot):
            self._full.add(slot, -1)
        self._places.pop(slot, None)

    def take(self, slot: int, asked: Mapping[str, int]) -> None:
        self._give(slot, PODS, -1)
        for name, number in asked.items():
            self._give(slot, name, -number)

    def give_back(self, slot: int, asked: Mapping[str, int]) -> None:
        self._give(slot, PODS, 1)
        for name, number in asked.items():
            self._give(slot, name, number)

    def free(self, slot: int, name: str) -> int:
        """Free amount of an extended resource; negative where it is overcommitted."""
        return self._free.get(name, {}).get(slot, 0)

    def is_known(self, name: str) -> bool:
        """Whether any node lists this resource."""
        return name in self._having

    def barred(self, asked: Mapping[str, int], end: int) -> list[FilteredNodes]:
        found = [FilteredNodes(TOO_MANY_PODS, self._full.flags(end))] if self._full else []
        for name, number in asked.items():
            lacking = self._lacking(name, number, end)
            if lacking.any():
                found.append(FilteredNodes(INSUFFICIENT.of(name), lacking))
        return found

    def _lacking(self, name: str, number: int, end: int) -> Flags:
        if not self.is_known(name):
            return np.ones(end, dtype=np.bool_)
        free = self._arrays.get(name)
        if free is None or free.size < end:
            free = np.zeros(end, dtype=np.int64)
            for slot, left in self._free.get(name, {}).items():
                free[slot] = left
            self._arrays.put(name, free, free.nbytes)
        return free[:end] < number

    def _lose(self, names: Mapping[str, int]) -> None:
        self._having.subtract(names.keys())
        for name in names:
            if not self._having[name]:
                del self._having[name]
                self._arrays.pop(name)

    def _give(self, slot: int, name: str, number: int) -> None:
        if name == PODS:
            self._give_places(slot, number)
            return
        by_slot = self._free.setdefault(name, {})
        now = by_slot.get(slot, 0) + number
        if now:
            by_slot[slot] = now
        else:
            by_slot.pop(slot, None)
            if not by_slot:
                del self._free[name]
        free = self._arrays.get(name)
        if free is not None:
            if slot < free.size:
                free[slot] = now
            else:
                self._arrays.pop(name)

    def _give_places(self, slot: int, number: int) -> None:
        self._places[slot] = now = self._places.get(slot, 0) + number
        if (now <= 0) != bool(self._full.at(slot)):
            self._full.add(slot, 1 if now <= 0 else -1)
