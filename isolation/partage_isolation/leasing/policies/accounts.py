"""What a policy remembers of one container on one card. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Account:
    """Numbers alone; what they mean is the policy's."""

    share: int
    """In milli; guaranteed."""
    limit: int
    """In milli; the ceiling."""
    virtual: int = 0
    """Time held, divided by share: nanoseconds of a whole card."""
    lead: int = 0
    """How far the others' virtual time was ahead when it last went away: what they owed it then."""
    room: int = 0
    """What the ceiling leaves at `room_at`."""
    room_at: int = 0
    quota: int = 0
    """How long its next lease may be."""
    run: int = 0
    """How long it has held the card in this lease."""
    used: int = 0
    """The sum of `runs`."""
    runs: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    """When each of its recent leases ended, and how long the card was held."""
