"""State machine of one container's time slice on one card, as one table.

Pure. A `TimeSliceEvent` moves the time slice from one state to another, as this table alone defines. `after` raises on
an event that the table does not have for a state, since events come only from the arbiter, never from a client.
`mermaid` draws the diagram in `docs/time-slices.md` from the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from partage_isolation.timeslices.line import LineState

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


class TimeSliceState(Enum):
    EMPTY = "empty"
    """No process of the container has joined."""
    IDLE = "idle"
    """Closed, and no process waits."""
    WAITING = "waiting"
    """Closed, and a process waits."""
    TIMED = "timed"
    """Open until its deadline."""
    SOLE = "sole"
    """Open until another container wants the card."""
    FREE = "free"
    """Open until another container joins."""
    CLOSING = "closing"
    """Ended; work may still be in flight."""

    __hash__ = object.__hash__  # by identity: looked up at each event


class TimeSliceEvent(Enum):
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
IDLE: Final = TimeSliceState.IDLE
FREE: Final = TimeSliceState.FREE
WANTED: Final = TimeSliceEvent.WANTED
LENT: Final = TimeSliceEvent.LENT
RENEWED: Final = TimeSliceEvent.RENEWED
ENDED: Final = TimeSliceEvent.ENDED
DONE: Final = TimeSliceEvent.DONE

_OPEN: Final = (TimeSliceState.TIMED, TimeSliceState.SOLE, TimeSliceState.FREE)

OPEN: Final = frozenset(_OPEN)
"""States in which the container's processes may launch."""


class Traits(NamedTuple):
    """Properties of a state, precomputed for code that checks them at each event."""

    is_open: bool
    """Its processes may launch."""
    is_busy: bool
    """The container wants the card or has it."""
    is_waiting: bool
    has_timeslice: bool
    is_closing: bool


TRAITS: Final[Mapping[TimeSliceState, Traits]] = {
    life: Traits(
        is_open=life in OPEN,
        is_busy=life not in {TimeSliceState.EMPTY, TimeSliceState.IDLE},
        is_waiting=life is TimeSliceState.WAITING,
        has_timeslice=life is TimeSliceState.TIMED,
        is_closing=life is TimeSliceState.CLOSING,
    )
    for life in TimeSliceState
}

TRANSITIONS: Final[Mapping[tuple[TimeSliceState, TimeSliceEvent], TimeSliceState]] = {
    (TimeSliceState.EMPTY, TimeSliceEvent.JOINED): TimeSliceState.IDLE,
    (TimeSliceState.IDLE, TimeSliceEvent.WANTED): TimeSliceState.WAITING,
    (TimeSliceState.WAITING, TimeSliceEvent.WITHDRAWN): TimeSliceState.IDLE,
    (TimeSliceState.WAITING, TimeSliceEvent.LENT): TimeSliceState.TIMED,
    (TimeSliceState.WAITING, TimeSliceEvent.GIVEN): TimeSliceState.SOLE,
    (TimeSliceState.WAITING, TimeSliceEvent.FREED): TimeSliceState.FREE,
    # The other cards of a gang are granted along with the card that a thread waits for.
    (TimeSliceState.IDLE, TimeSliceEvent.LENT): TimeSliceState.TIMED,
    (TimeSliceState.IDLE, TimeSliceEvent.GIVEN): TimeSliceState.SOLE,
    (TimeSliceState.IDLE, TimeSliceEvent.FREED): TimeSliceState.FREE,
    (TimeSliceState.TIMED, TimeSliceEvent.RENEWED): TimeSliceState.TIMED,
    (TimeSliceState.TIMED, TimeSliceEvent.RELIEVED): TimeSliceState.SOLE,
    (TimeSliceState.SOLE, TimeSliceEvent.CONTENDED): TimeSliceState.TIMED,
    (TimeSliceState.FREE, TimeSliceEvent.CONTENDED): TimeSliceState.TIMED,
    (TimeSliceState.FREE, TimeSliceEvent.JOINED_BY): TimeSliceState.SOLE,
    (TimeSliceState.SOLE, TimeSliceEvent.ALONE): TimeSliceState.FREE,
    **{(state, TimeSliceEvent.ENDED): TimeSliceState.CLOSING for state in _OPEN},
    (TimeSliceState.CLOSING, TimeSliceEvent.REOPENED): TimeSliceState.TIMED,
    (TimeSliceState.CLOSING, TimeSliceEvent.DONE): TimeSliceState.IDLE,
    **{
        (state, TimeSliceEvent.LEFT): TimeSliceState.EMPTY
        for state in TimeSliceState
        if state is not TimeSliceState.EMPTY
    },
}

LINES: Final[Mapping[TimeSliceState, LineState]] = {
    **dict.fromkeys(TimeSliceState, LineState.CLOSED),
    TimeSliceState.TIMED: LineState.TIMESLICE,
    TimeSliceState.SOLE: LineState.SOLE,
    TimeSliceState.FREE: LineState.FREE,
}
"""State in the container's line; an expired time slice may also leave the line unchanged."""


def after(life: TimeSliceState, event: TimeSliceEvent) -> TimeSliceState:
    return TRANSITIONS[life, event]


def mermaid() -> str:
    arrows: dict[tuple[TimeSliceState, TimeSliceState], list[str]] = {}
    for (state, event), then in TRANSITIONS.items():
        if event is not TimeSliceEvent.LEFT:
            arrows.setdefault((state, then), []).append(event.value)
    lines = [f"    {state.value} --> {then.value}: {'<br>'.join(events)}" for (state, then), events in arrows.items()]
    leaving = f"    note right of {TimeSliceState.EMPTY.value}: from anywhere, when the {TimeSliceEvent.LEFT.value}"
    return "\n".join(["stateDiagram-v2", f"    [*] --> {TimeSliceState.EMPTY.value}", *lines, leaving])
