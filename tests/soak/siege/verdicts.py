"""What is judged, each thing by a name of its own, so that it can be said which mechanism it needs. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    LIVES = "lives"
    """No daemon ends, and kubelet would restart none."""
    ANSWERS = "answers"
    CONNECTIONS = "connections"
    """The scheduler has no more descriptors than its bounds allow."""
    MEMORY = "memory"
    WATCHES = "watches"
    """Who follows all pods goes on, whatever they are."""
    WAITS = "waits"
    PLACED = "placed"
    URGENT = "urgent"
    """Who is more important than all others is placed, whatever grace those have asked for."""
    CARDS = "cards"
    """No card is given away twice, and all that is given away is signed."""
    REFUSED = "refused"
    """The API server takes nothing that it is told to refuse."""
    EXCESS = "excess"
    EXCLUSION = "exclusion"
    """Nobody keeps others off a card who does not ask for all of it."""
    NOTHING = "nothing"
    """A container that was given nothing has no card."""
    BROKER = "broker"
    """Who shares a node with a flood becomes known to the broker and is served in time."""
    CARD_TIME = "card time"
    """No container has more of its card's time than its limit, and none less than its share."""
    CARD_MEMORY = "card memory"
    """No container has more of its card's memory than it was given."""


class Wrong(NamedTuple):
    verdict: Verdict
    what: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.what}"
