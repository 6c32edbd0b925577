"""How much of held calls this process keeps in memory, over all connections.

A held call asks for room as soon as the length of its message is known. With room it gets credits for all it sends, so
it will end without waiting for another call. Without room it stands in line, first come, first served, and its stream
gets no credits. What it sent unasked, up to its first window, is counted apart and bounded as well. A call too many is
refused at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MIB: Final = 1 << 20


@dataclass(frozen=True)
class QuotaLimits:
    """What held calls may take."""

    room_bytes: int = 64 * _MIB
    unasked_bytes: int = 16 * _MIB
    calls: int = 1024
    calls_each: int = 512
    """Of one connection."""


@dataclass(eq=False)
class Slot:
    """One call's part of it."""

    let_in: Callable[[], None]
    is_one_too_many: bool
    size: int = 0
    unasked: int = 0
    is_let_in: bool = False
    has_left: bool = False


class Quota:
    def __init__(self, limits: QuotaLimits | None = None) -> None:
        self.limits = limits or QuotaLimits()
        self.calls = 0
        self.room_taken = 0
        self.unasked = 0
        self._line: deque[Slot] = deque()

    def enter(self, let_in: Callable[[], None]) -> Slot:
        """One more held call, perhaps one too many; `let_in` is called when it gets room after it had to wait."""
        self.calls += 1
        return Slot(let_in, is_one_too_many=self.calls > self.limits.calls)

    def ask(self, slot: Slot, size: int) -> None:
        """Gives room, or a place in the line."""
        slot.size = size
        self._line.append(slot)
        if self._line[0] is slot and self._has_room(slot):
            self._give(self._line.popleft())

    def add_unasked(self, slot: Slot, size: int) -> bool:
        """Counts what came before there was room; False where that is too much."""
        slot.unasked += size
        self.unasked += size
        return self.unasked <= self.limits.unasked_bytes

    def leave(self, slot: Slot) -> None:
        """A call that leaves, the first time that it does, makes room for the next."""
        if slot.has_left:
            return
        slot.has_left = True
        self.calls -= 1
        self.unasked -= slot.unasked
        if slot.is_let_in:
            self.room_taken -= slot.size
        elif slot in self._line:
            self._line.remove(slot)
        while self._line and self._has_room(self._line[0]):
            following = self._line.popleft()
            self._give(following)
            following.let_in()

    def _has_room(self, slot: Slot) -> bool:
        return not self.room_taken or self.room_taken + slot.size <= self.limits.room_bytes

    def _give(self, slot: Slot) -> None:
        self.room_taken += slot.size
        slot.is_let_in = True
        self.unasked -= slot.unasked
        slot.unasked = 0
