"""The memory that intercepted calls may use in this process, over all connections.

An intercepted call requests room as soon as its message length is known. With room it gets credits for all that it
sends, so it completes without waiting for another call. Without room it waits in a FIFO queue, and its stream gets no
credits. Data sent before room is granted, up to the stream's first window, is counted separately and bounded as well.
Calls beyond the limit are rejected at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MIB: Final = 1 << 20


@dataclass(frozen=True)
class QuotaLimits:
    """Limits on intercepted calls."""

    room_bytes: int = 64 * _MIB
    unasked_bytes: int = 16 * _MIB
    calls: int = 1024
    calls_each: int = 512
    """Per connection."""


@dataclass(eq=False)
class Slot:
    """One call's part of the quota."""

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
        """Register an intercepted call, perhaps one too many; `let_in` is called if it is granted room after a wait."""
        self.calls += 1
        return Slot(let_in, is_one_too_many=self.calls > self.limits.calls)

    def ask(self, slot: Slot, size: int) -> None:
        """Grant room, or queue the call."""
        slot.size = size
        self._line.append(slot)
        if self._line[0] is slot and self._has_room(slot):
            self._give(self._line.popleft())

    def add_unasked(self, slot: Slot, size: int) -> bool:
        """Count data that arrived before there was room; returns False if the limit is exceeded."""
        slot.unasked += size
        self.unasked += size
        return self.unasked <= self.limits.unasked_bytes

    def leave(self, slot: Slot) -> None:
        """Release a call's room, once, and let queued calls in."""
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
