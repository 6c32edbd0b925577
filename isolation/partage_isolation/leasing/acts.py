"""What the arbiter wants done, and what it tells of a container's time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from partage_isolation.leasing.words import LineState
from partage_plugins.vocabulary.names import CardId, ContainerKey


class Write(NamedTuple):
    """Write this into the container's line for the card, and wake whoever waits there."""

    key: ContainerKey
    card: CardId
    state: LineState
    epoch: int
    deadline_ns: int
    """0 where the state has none."""


class Hint(NamedTuple):
    """Tell each member that the line has changed; what can't be told now need not be."""

    key: ContainerKey
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
    last_ns: int


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
    """Leases after which nobody waited any longer for work that was under way."""
    state: LineState
    is_waiting: bool
    members: int
