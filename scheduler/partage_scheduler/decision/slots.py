"""Slots of nodes: small dense numbers that index arrays, and are reused.

The lowest free number is assigned first, so that arrays stay as short as the cluster allows. Among equal scores the
node whose name sorts first is chosen: this depends neither on the order in which nodes were added nor on their slots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from itertools import repeat
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api import NodeName, Slot

Integer = TypeVar("Integer", bound=np.integer[Any])


class SlotTable:
    def __init__(self) -> None:
        self._slots: dict[NodeName, Slot] = {}
        self._names: list[NodeName | None] = []
        self._free: list[Slot] = []
        self._taken = np.zeros(0, dtype=np.bool_)
        self._ranks: NDArray[np.int32] | None = None
        self._scattered = 0
        """Nodes added since names were last copied together."""

    @property
    def end(self) -> int:
        """One more than the highest slot that was ever assigned."""
        return len(self._names)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, node: NodeName) -> bool:
        return node in self._slots

    def of(self, node: NodeName) -> Slot | None:
        return self._slots.get(node)

    def known(self, node: NodeName) -> Slot:
        slot = self._slots.get(node)
        if slot is None:
            raise ValueError(f"node {node} is not known; add it first")
        return slot

    def of_all(self, nodes: Collection[NodeName]) -> NDArray[np.intp]:
        """Slots of these nodes; -1 for an unknown node."""
        if self._scattered > len(self._slots) // 2:
            self._gather()
        return np.fromiter(map(self._slots.get, nodes, repeat(-1)), dtype=np.intp, count=len(nodes))

    def flags(self, nodes: Iterable[NodeName]) -> Flags:
        """Flags by slot that mark these nodes; unknown nodes are ignored."""
        found = np.zeros(self.end, dtype=np.bool_)
        found[[slot for node in nodes if (slot := self._slots.get(node)) is not None]] = True
        return found

    def name(self, slot: int) -> NodeName:
        name = self._names[slot]
        if name is None:
            raise ValueError(f"slot {slot} has no node")
        return name

    def taken(self, slots: NDArray[Integer]) -> NDArray[Integer]:
        """The slots among these that have a node."""
        return slots[self._taken.take(slots)]

    def all(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._taken[: self.end])

    def give(self, node: NodeName) -> Slot:
        if node in self._slots:
            raise ValueError(f"node {node} has slot {self._slots[node]} already")
        if self._free:
            slot = heappop(self._free)
        else:
            slot = Slot(len(self._names))
            self._names.append(None)
            self._taken = grown(self._taken, slot + 1, 0)
        self._slots[node], self._names[slot], self._taken[slot] = slot, node, True
        self._scattered += 1
        self._ranks = None
        return slot

    def free(self, node: NodeName) -> Slot:
        slot = self._slots.pop(node)
        self._names[slot], self._taken[slot], self._ranks = None, False, None
        heappush(self._free, slot)
        return slot

    def first_by_name(self, slots: NDArray[np.intp]) -> Slot:
        """Of several taken slots, the one whose node's name sorts first."""
        if slots.size == 1:
            return Slot(int(slots[0]))
        return Slot(int(slots[np.argmin(self._ranked()[slots])]))

    def _gather(self) -> None:
        """Copies names together: scattered over memory as they arrived, looking up hundreds takes twice as long."""
        names = [NodeName(name.encode().decode()) for name in self._slots]
        slots = np.fromiter(self._slots.values(), dtype=np.intp, count=len(names)).tolist()
        self._slots = dict(zip(names, slots, strict=True))
        self._scattered = 0

    def _ranked(self) -> NDArray[np.int32]:
        if self._ranks is None:
            self._ranks = self._ranks_now()
        return self._ranks

    def _ranks_now(self) -> NDArray[np.int32]:
        ranks = np.full(len(self._names), np.iinfo(np.int32).max, dtype=np.int32)
        ranks[[self._slots[name] for name in sorted(self._slots)]] = np.arange(len(self._slots), dtype=np.int32)
        return ranks


_SMALLEST: Final = 64
Number = TypeVar("Number", bound=np.generic)


def grown(array: NDArray[Number], size: int, fill: float) -> NDArray[Number]:
    """The array itself if it is long enough, else a longer copy padded with `fill`."""
    if size <= array.size:
        return array
    longer = np.full(max(size, 2 * array.size, _SMALLEST), fill, dtype=array.dtype)
    longer[: array.size] = array
    return longer
