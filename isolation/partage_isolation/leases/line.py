"""The line of a container in its page, what the arbiter wants done, and what it tells of a container's time.

Pure. A line is one word, so that no reader needs an order between words; it is the twin of `preload/core/wire.h`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId

LINE_BYTES: Final = 64
"""Of each card's line in a page."""
EPOCHS: Final = 1 << 17
"""An epoch counts modulo this; it is compared for equality alone."""
_DEADLINES: Final = 1 << 44
_EPOCH_SHIFT: Final = 3
_DEADLINE_SHIFT: Final = 20
_UNIT_SHIFT: Final = 14
"""A deadline is counted in units of 16 384 ns."""


class LineState(IntEnum):
    CLOSED = 0
    LEASE = 1
    """Until its deadline."""
    SOLE = 2
    """Without one: no other container wants the card."""
    FREE = 3
    """No other container has a process there."""


def pack(state: LineState, epoch: int, deadline_ns: int) -> int:
    """The word; the deadline is rounded down, and 0 where there is none."""
    deadline = (deadline_ns >> _UNIT_SHIFT) % _DEADLINES
    return state | (epoch % EPOCHS) << _EPOCH_SHIFT | deadline << _DEADLINE_SHIFT


def unpack(word: int) -> tuple[LineState, int, int]:
    state = LineState(word & ((1 << _EPOCH_SHIFT) - 1))
    epoch = word >> _EPOCH_SHIFT & (EPOCHS - 1)
    return state, epoch, word >> _DEADLINE_SHIFT << _UNIT_SHIFT


def after(epoch: int) -> int:
    return (epoch + 1) % EPOCHS


class Write(NamedTuple):
    """Write this into the container's line for the card, and wake the threads that wait there."""

    key: BudgetKey
    card: CardId
    state: LineState
    epoch: int
    deadline_ns: int
    """0 where the state has none."""


class Hint(NamedTuple):
    """Tell each member that the line has changed; what can't be told now need not be."""

    key: BudgetKey
    card: CardId
    epoch: int


class Windows(NamedTuple):
    """A part of a card's time, 0 to 1, over the last 1, 10 and 60 seconds."""

    s1: float
    s10: float
    s60: float


@dataclass(frozen=True, slots=True)
class Drains:
    """How long work was still under way when leases had ended."""

    count: int
    sum_ns: int


class Shares(NamedTuple):
    """One container on one card."""

    wanted: Windows
    """It held the card or waited for it."""
    got: Windows
    """It held the card, less what overlapping took of that."""
    leases: int
    revocations: int
    drains: Drains
    overlaps: int
    """Leases whose work was given up while it was under way."""
    state: LineState
    is_waiting: bool
    members: int
    wanted_ns: int
    """In all, as `got_ns`."""
    got_ns: int
