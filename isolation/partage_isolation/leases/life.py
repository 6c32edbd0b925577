"""State machine of one container's time slice on one card, as one table.

Pure. A `LeaseEvent` moves the time slice from one state to another, as this table alone defines. `after` raises on an
event that the table does not have for a state, since events come only from the arbiter, never from a client. `mermaid`
draws the diagram in `docs/leases.md` from the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from partage_isolation.leases.line import LineState

Member = Hashable
"""A process, in the caller's representation."""


@dataclass(slots=True)
class Presence:
    """A member's last reports, as far as they still apply."""

    drained: int | None = None
    """Epoch whose work it last reported as finished."""
    is_idle: bool = False
    """It reported idle in this epoch; it may have started again since."""
    wants: bool = False
    silent_since: int | None = None
    """End of its time slice, if it never reported that its work was finished."""
    is_stopped: bool = False
    """The process is stopped (no thread runs), so its launched work has finished, even if it never reported that."""


class Life(Enum):
    EMPTY = "empty"
    """No process of the container has joined."""
    IDLE = "idle"
    """Closed, and no process waits."""
    WAITING = "waiting"
    """Closed, and a process waits."""
    LEASED = "leased"
    """Open until its deadline."""
    SOLE = "sole"
    """Open until another container wants the card."""
    FREE = "free"
    """Open until another container joins."""
    CLOSING = "closing"
    """Ended; work may still be in flight."""

    __hash__ = object.__hash__  # by identity: looked up at each event


class LeaseEvent(Enum):
    JOINED = "first process joins"
    LEFT = "last process leaves"
    WANTED = "a thread finds the gate closed"
    WITHDRAWN = "the process that waited leaves"
    LENT = "granted until a deadline"
    GIVEN = "granted, no other wants the card"
    FREED = "granted, no other is there"
    CONTENDED = "somebody else wants"
    JOINED_BY = "another container joins"
    RENEWED = "another deadline"
    RELIEVED = "no other wants the card any more"
    ALONE = "the last other container leaves"
    ENDED = "deadline, revoked or idle"
    REOPENED = "another card of its gang waits for launches"
    DONE = "drained, or waited for in vain"

    __hash__ = object.__hash__  # as above


# For code that runs at each event: a global is faster to look up than a member of an enumeration.
IDLE: Final = Life.IDLE
FREE: Final = Life.FREE
WANTED: Final = LeaseEvent.WANTED
LENT: Final = LeaseEvent.LENT
RENEWED: Final = LeaseEvent.RENEWED
ENDED: Final = LeaseEvent.ENDED
DONE: Final = LeaseEvent.DONE

_OPEN: Final = (Life.LEASED, Life.SOLE, Life.FREE)

OPEN: Final = frozenset(_OPEN)
"""States in which the container's processes may launch."""


class Traits(NamedTuple):
    """Properties of a state, precomputed for code that checks them at each event."""

    is_open: bool
    """Its processes may launch."""
    is_busy: bool
    """The container wants the card or has it."""
    is_waiting: bool
    is_leased: bool
    is_closing: bool


TRAITS: Final[Mapping[Life, Traits]] = {
    life: Traits(
        is_open=life in OPEN,
        is_busy=life not in {Life.EMPTY, Life.IDLE},
        is_waiting=life is Life.WAITING,
        is_leased=life is Life.LEASED,
        is_closing=life is Life.CLOSING,
    )
    for life in Life
}

TRANSITIONS: Final[Mapping[tuple[Life, LeaseEvent], Life]] = {
    (Life.EMPTY, LeaseEvent.JOINED): Life.IDLE,
    (Life.IDLE, LeaseEvent.WANTED): Life.WAITING,
    (Life.WAITING, LeaseEvent.WITHDRAWN): Life.IDLE,
    (Life.WAITING, LeaseEvent.LENT): Life.LEASED,
    (Life.WAITING, LeaseEvent.GIVEN): Life.SOLE,
    (Life.WAITING, LeaseEvent.FREED): Life.FREE,
    # The other cards of a gang are granted along with the card that a thread waits for.
    (Life.IDLE, LeaseEvent.LENT): Life.LEASED,
    (Life.IDLE, LeaseEvent.GIVEN): Life.SOLE,
    (Life.IDLE, LeaseEvent.FREED): Life.FREE,
    (Life.LEASED, LeaseEvent.RENEWED): Life.LEASED,
    (Life.LEASED, LeaseEvent.RELIEVED): Life.SOLE,
    (Life.SOLE, LeaseEvent.CONTENDED): Life.LEASED,
    (Life.FREE, LeaseEvent.CONTENDED): Life.LEASED,
    (Life.FREE, LeaseEvent.JOINED_BY): Life.SOLE,
    (Life.SOLE, LeaseEvent.ALONE): Life.FREE,
    **{(state, LeaseEvent.ENDED): Life.CLOSING for state in _OPEN},
    (Life.CLOSING, LeaseEvent.REOPENED): Life.LEASED,
    (Life.CLOSING, LeaseEvent.DONE): Life.IDLE,
    **{(state, LeaseEvent.LEFT): Life.EMPTY for state in Life if state is not Life.EMPTY},
}

LINES: Final[Mapping[Life, LineState]] = {
    **dict.fromkeys(Life, LineState.CLOSED),
    Life.LEASED: LineState.LEASE,
    Life.SOLE: LineState.SOLE,
    Life.FREE: LineState.FREE,
}
"""State in the container's line; an expired time slice may also leave the line unchanged."""


def after(life: Life, event: LeaseEvent) -> Life:
    return TRANSITIONS[life, event]


def mermaid() -> str:
    arrows: dict[tuple[Life, Life], list[str]] = {}
    for (state, event), then in TRANSITIONS.items():
        if event is not LeaseEvent.LEFT:
            arrows.setdefault((state, then), []).append(event.value)
    lines = [f"    {state.value} --> {then.value}: {'<br>'.join(events)}" for (state, then), events in arrows.items()]
    leaving = f"    note right of {Life.EMPTY.value}: from anywhere, when the {LeaseEvent.LEFT.value}"
    return "\n".join(["stateDiagram-v2", f"    [*] --> {Life.EMPTY.value}", *lines, leaving])
