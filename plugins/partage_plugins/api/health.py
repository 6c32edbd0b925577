"""A card's health: its state, the typed cause, and a sentence for people.

Programs decide by state and cause alone. The sentence is shown unchanged: it may come from a driver, from a file that
somebody wrote, or from another version of partage.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

State = Literal["ok", "degraded", "lost"]
"""`ok`: accepts new pods; `degraded`: no new pods, running ones continue; `lost`: no container may use it."""


class HealthCause(StrEnum):
    """Why a card is not ok, as encoded in the inventory."""

    PAUSED = "paused"
    """The node's cards are paused, by an operator or for a driver upgrade."""
    NATIVE = "native"
    """Kubelet gave the card to a pod by itself."""
    BLIND = "blind"
    """NVML does not report what the limits depend on."""
    RECOVERING = "recovering"
    """The fault is gone; the card is watched for a quiet period."""
    MEMORY_ERROR = "memory-error"
    """A memory error that ECC could not correct."""
    XID = "xid"
    """The driver reported a transient error."""
    XID_RESET = "xid-reset"
    """The driver reported an error that only a reset clears."""
    NEEDS_RESET = "needs-reset"
    """The driver asks for a reset."""
    WORN = "worn"
    """No spare memory rows are left: the card must be replaced."""
    FAULT = "fault"
    """The card answers the driver with an error, or not at all."""
    FELL_OFF = "fell-off"
    """The card fell off the bus."""
    GONE = "gone"
    """The driver no longer shows the card."""
    DRIVER = "driver"
    """The driver or its library is missing, their versions differ, or the driver hangs."""
    OTHER = "other"
    """Every code that this version does not know."""

    @classmethod
    def _missing_(cls, value: object) -> HealthCause:
        """Newer writers may use causes that this reader does not know."""
        del value
        return cls.OTHER


class CardHealth(NamedTuple):
    """State, cause and sentence of one card."""

    state: State = "ok"
    cause: HealthCause | None = None
    """None if the card is ok or the writer gave no cause; nothing is decided by the cause then."""
    why: str | None = None

    @classmethod
    def degraded(cls, cause: HealthCause, why: str) -> CardHealth:
        """A card that gets no new pods; running ones continue."""
        return cls("degraded", cause, why)

    @classmethod
    def lost(cls, cause: HealthCause, why: str | None) -> CardHealth:
        """A card that is unusable, for running containers too."""
        return cls("lost", cause, why)

    def __str__(self) -> str:
        """For people: `ok`, `degraded: why`, `lost: why`."""
        return f"{self.state}: {self.why}" if self.why else self.state


OK: Final = CardHealth()
