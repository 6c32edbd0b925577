"""Verdicts, each with a name, so that mechanisms can refer to them. Pure."""

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
    """Clients that watch all pods go on, with any contents."""
    WAITS = "waits"
    PLACED = "placed"
    URGENT = "urgent"
    """Pods of the highest priority are placed, whatever grace period others have."""
    CARDS = "cards"
    """No card is given away twice, and all grants are signed."""
    REFUSED = "refused"
    """The API server accepts nothing that it must refuse."""
    EXCESS = "excess"
    EXCLUSION = "exclusion"
    """No pod keeps others off a card unless it requests all of it."""
    NOTHING = "nothing"
    """A container without a grant has no card."""
    BROKER = "broker"
    """Containers beside a flood are registered with the broker and served in time."""
    CARD_TIME = "card time"
    """No container has more of its card's time than its limit, and none less than its share."""
    CARD_MEMORY = "card memory"
    """No container has more of its card's memory than its grant."""


class Wrong(NamedTuple):
    verdict: Verdict
    what: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.what}"
