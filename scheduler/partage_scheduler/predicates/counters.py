"""Sparse counts by slot, and an array of the slots with a non-zero count, built on first use."""

from __future__ import annotations

import numpy as np

from partage_plugins.answers import Flags


class Counter:
    __slots__ = ("_by_slot", "_flags")

    def __init__(self) -> None:
        self._by_slot: dict[int, int] = {}
        self._flags: Flags | None = None

    def __bool__(self) -> bool:
        return bool(self._by_slot)

    def __len__(self) -> int:
        return len(self._by_slot)

    def add(self, slot: int, number: int) -> None:
        before = self._by_slot.get(slot, 0)
        now = before + number
        if now:
            self._by_slot[slot] = now
        else:
            self._by_slot.pop(slot, None)
        if self._flags is not None and bool(now) != bool(before):
            self._changed(self._flags, slot, to=bool(now))

    def at(self, slot: int) -> int:
        return self._by_slot.get(slot, 0)

    def flags(self, end: int) -> Flags:
        """Which slots have a non-zero count. The returned array must not be modified."""
        if self._flags is None or self._flags.size < end:
            self._flags = np.zeros(end, dtype=np.bool_)
            self._flags[[slot for slot in self._by_slot if slot < end]] = True
        return self._flags[:end]

    def _changed(self, flags: Flags, slot: int, *, to: bool) -> None:
        """Replaces the array instead of modifying it: a caller may still hold the old one."""
        self._flags = None
        if slot < flags.size:
            self._flags = flags.copy()
            self._flags[slot] = to
