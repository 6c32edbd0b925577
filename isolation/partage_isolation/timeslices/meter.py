"""Usage of a card's time over the last second, ten seconds and minute, and counters of time slices. Pure.

Only complete slots of a tenth of a second are counted, so a figure changes ten times a second and never includes the
future. Each slot stores the running total at its end, so a window is a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from partage_isolation.timeslices.durations import MS
from partage_isolation.timeslices.line import Windows

_SLOT_NS: Final = 100 * MS
_SLOTS: Final = 600
_RING: Final = _SLOTS + 2
"""Two more: the slot that is being filled, and the one before the first."""


class Meter:
    """Accumulates one duration over sliding windows, in nanoseconds."""

    __slots__ = ("_began", "_ring", "_slot", "_until", "total")

    def __init__(self, now: int) -> None:
        self._ring = [0] * _RING
        self._slot = self._began = now // _SLOT_NS
        self._until = (self._slot + 1) * _SLOT_NS
        self.total = 0

    def add(self, start: int, end: int, amount: int) -> None:
        """Add an amount, spread evenly over the time from start to end."""
        self.total += amount
        if end >= self._until:
            self._move(end // _SLOT_NS)
        if amount:
            if start < self._until - _SLOT_NS:
                self._spread(start, end, amount)
            else:
                self._ring[self._slot % _RING] += amount

    def windows(self, now: int) -> Windows:
        """Averages over complete slots before now, or over the meter's lifetime if that is shorter."""
        self._move(now // _SLOT_NS)
        return Windows(*(self._part(slots) for slots in (10, 100, 600)))

    def _part(self, slots: int) -> float:
        slots = min(slots, self._slot - self._began)
        if not slots:
            return 0.0
        last = self._slot - 1
        return (self._ring[last % _RING] - self._ring[(last - slots) % _RING]) / (slots * _SLOT_NS)

    def _move(self, slot: int) -> None:
        until_now = self._ring[self._slot % _RING]
        if slot - self._slot >= _RING:
            self._ring, self._slot = [until_now] * _RING, slot
        while self._slot < slot:
            self._slot += 1
            self._ring[self._slot % _RING] = until_now
        self._until = (self._slot + 1) * _SLOT_NS

    def _spread(self, start: int, end: int, amount: int) -> None:
        for slot in range(max(start // _SLOT_NS, self._slot - _SLOTS - 1), self._slot + 1):
            until = min(end, (slot + 1) * _SLOT_NS)
            self._ring[slot % _RING] += amount * (until - start) // (end - start)


@dataclass(slots=True)
class Counts:
    timeslices: int = 0
    revocations: int = 0
    drains: int = 0
    drains_ns: int = 0
    overlaps: int = 0

    def drained(self, drain_ns: int) -> None:
        """Count a drain that finished in time, this long after the time slice."""
        self.drains, self.drains_ns = self.drains + 1, self.drains_ns + drain_ns


def divided(amount: int, among: Sequence[int]) -> list[int]:
    """Split an amount in proportion to numbers of processes, into integers that add up to the amount."""
    whole, before, parts = sum(among), 0, list[int]()
    for processes in among:
        after = before + processes
        parts.append(amount * after // whole - amount * before // whole)
        before = after
    return parts
