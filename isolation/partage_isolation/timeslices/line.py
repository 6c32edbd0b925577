"""A container's line in its shared page, the arbiter's actions, and the accounting of a container's time.

Pure. A line is a single word, so that readers need no memory ordering between words. `preload/core/wire.h` defines the
same layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from partage_isolation.names import BudgetKey
from partage_plugins.api.names import CardId

LINE_BYTES: Final = 64
"""Size of each card's line in a page."""
EPOCHS: Final = 1 << 17
"""Epochs count modulo this and are only compared for equality."""
_DEADLINES: Final = 1 << 44
_EPOCH_SHIFT: Final = 3
_DEADLINE_SHIFT: Final = 20
_UNIT_SHIFT: Final = 14
"""A deadline is counted in units of 16 384 ns."""


class LineState(IntEnum):
    CLOSED = 0
    TIMESLICE = 1
    """Open until the deadline."""
    SOLE = 2
    """Open without a deadline: no other container wants the card."""
    FREE = 3
    """Open: no other container has a process on the card."""


def pack(state: LineState, epoch: int, deadline_ns: int) -> int:
    """Encode a line; the deadline is rounded down, or 0 for none."""
    deadline = (deadline_ns >> _UNIT_SHIFT) % _DEADLINES
    return state | (epoch % EPOCHS) << _EPOCH_SHIFT | deadline << _DEADLINE_SHIFT


def unpack(word: int) -> tuple[LineState, int, int]:
    state = LineState(word & ((1 << _EPOCH_SHIFT) - 1))
    epoch = word >> _EPOCH_SHIFT & (EPOCHS - 1)
    return state, epoch, word >> _DEADLINE_SHIFT << _UNIT_SHIFT


def after(epoch: int) -> int:
    return (epoch + 1) % EPOCHS


class Write(NamedTuple):
    """Write this state into the container's line for the card, and wake the threads that wait on it."""

    key: BudgetKey
    card: CardId
    state: LineState
    epoch: int
    deadline_ns: int
    """0 where the state has no deadline."""


class Notify(NamedTuple):
    """Notify each member that the line has changed. Best effort: undeliverable notifications are dropped."""

    key: BudgetKey
    card: CardId
    epoch: int


class Windows(NamedTuple):
    """A fraction of a card's time, 0 to 1, over the last 1, 10 and 60 seconds."""

    s1: float
    s10: float
    s60: float


@dataclass(frozen=True, slots=True)
class Drains:
    """How long work was still in flight after time slices ended."""

    count: int
    sum_ns: int


class Shares(NamedTuple):
    """Accounting of one container on one card."""

    wanted: Windows
    """Time in which it held the card or waited for it."""
    got: Windows
    """Time in which it held the card, less what overlapping took of that."""
    timeslices: int
    revocations: int
    drains: Drains
    overlaps: int
    """Time slices whose drain was abandoned with work still in flight."""
    state: LineState
    is_waiting: bool
    members: int
    wanted_ns: int
    """Total, as `got_ns`."""
    got_ns: int
