"""The word of a line in a container's page: what its processes read before each launch.

Pure; the twin of what `preload/core/wire.h` says of it. One word, so that nobody needs an order between words.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

EPOCHS: Final = 1 << 17
"""An epoch counts modulo this; it is compared for equality alone."""
_DEADLINES: Final = 1 << 44
_EPOCH_SHIFT: Final = 3
_DEADLINE_SHIFT: Final = 20
_UNIT_SHIFT: Final = 14
"""A deadline is counted in units of 16 384 ns."""


class LineState(IntEnum):
    """What a line says."""

    CLOSED = 0
    LEASE = 1
    """Until its deadline."""
    SOLE = 2
    """Without one: nobody else wants the card."""
    FREE = 3
    """Nobody else could want it: no other container has a process there."""


def pack(state: LineState, epoch: int, deadline_ns: int) -> int:
    """The word; the deadline is rounded down, and 0 where there is none."""
    deadline = (deadline_ns >> _UNIT_SHIFT) % _DEADLINES
    return state | (epoch % EPOCHS) << _EPOCH_SHIFT | deadline << _DEADLINE_SHIFT


def unpack(word: int) -> tuple[LineState, int, int]:
    """State, epoch and deadline in nanoseconds."""
    state = LineState(word & ((1 << _EPOCH_SHIFT) - 1))
    epoch = word >> _EPOCH_SHIFT & (EPOCHS - 1)
    return state, epoch, word >> _DEADLINE_SHIFT << _UNIT_SHIFT


def after(epoch: int) -> int:
    """The next one."""
    return (epoch + 1) % EPOCHS
