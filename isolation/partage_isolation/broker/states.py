"""The life of a process in the broker's books, as one table.

Pure. What happens to a process is an `Event`; nothing but this table says what it then is. What is not in the table
does not happen: the process stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class State(IntEnum):
    """What a process is. The numbers are written to files."""

    LIVE = 1
    """Connected."""
    DETACHED = 2
    """Its connection is gone and it lives: still charged."""
    UNCONFIRMED = 3
    """Known from before the broker was started, and not yet heard of."""
    FOUND = 4
    """Never said anything; a card shows it, and it is of the container."""
    DEAD = 5
    """Gone; charged until the card shows no more of it."""
    GONE = 6
    """Forgotten."""


class Event(IntEnum):
    """What happens to a process."""

    HUNG_UP = 1
    RESUMED = 2
    """It came with the token that it was given."""
    BEGAN_ANEW = 3
    """It came without one: it has executed another program."""
    RESTARTED = 4
    """The broker was."""
    DIED = 5
    ABSENT = 6
    """No card shows it any more."""


_ALIVE: Final = (State.LIVE, State.DETACHED, State.UNCONFIRMED, State.FOUND)

SPEAKING: Final = (State.LIVE, State.DETACHED, State.UNCONFIRMED)
"""Alive, and known to speak for themselves."""

TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.LIVE, Event.HUNG_UP): State.DETACHED,
    (State.LIVE, Event.RESTARTED): State.UNCONFIRMED,
    (State.DETACHED, Event.RESTARTED): State.UNCONFIRMED,
    # A connection that breaks may be noticed after the next one is there.
    (State.LIVE, Event.RESUMED): State.LIVE,
    (State.DETACHED, Event.RESUMED): State.LIVE,
    (State.UNCONFIRMED, Event.RESUMED): State.LIVE,
    **{(state, Event.BEGAN_ANEW): State.LIVE for state in _ALIVE},
    **{(state, Event.DIED): State.DEAD for state in _ALIVE},
    (State.FOUND, Event.ABSENT): State.GONE,
    (State.DEAD, Event.ABSENT): State.GONE,
}


def after(state: State, event: Event) -> State:
    """What a process is after that; the same where the event says nothing to it."""
    return TRANSITIONS.get((state, event), state)
