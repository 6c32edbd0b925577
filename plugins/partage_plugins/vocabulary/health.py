"""How a card is: its state, the typed cause, and a sentence for people.

Programs decide by state and cause alone. The sentence is shown as it is: it may come from a driver, from a file that
somebody wrote, or from another version of partage.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

State = Literal["ok", "degraded", "lost"]
"""Takes new pods; takes none, and what runs goes on; no container may use it."""


class HealthCause(StrEnum):
    """Why a card is not ok, as the inventory has it on the wire."""

    PAUSED = "paused"
    """The node's cards are to rest: an operator or a driver upgrade asks for it."""
    NATIVE = "native"
    """Kubelet gave the card to a pod by itself."""
    BLIND = "blind"
    """NVML does not tell what the limits need to know."""
    RECOVERING = "recovering"
    """Nothing is wrong any more; the card is watched for a quiet period."""
    MEMORY_ERROR = "memory-error"
    """An error of memory that ECC could not correct."""
    XID = "xid"
    """The driver reported an error that passes."""
    XID_RESET = "xid-reset"
    """The driver reported an error that only a reset mends."""
    NEEDS_RESET = "needs-reset"
    """The driver asks for a reset."""
    WORN = "worn"
    """No spare rows of memory are left: the card must be replaced."""
    FAULT = "fault"
    """The card answers the driver with an error, or nothing."""
    FELL_OFF = "fell-off"
    """The card fell off the bus."""
    GONE = "gone"
    """The driver no longer shows the card."""
    DRIVER = "driver"
    """No driver, no library, versions that differ, a driver that hangs."""
    OTHER = "other"
    """Every code that this version does not know."""

    @classmethod
    def _missing_(cls, value: object) -> HealthCause:
        """Newer writers may name causes that this reader has never heard of."""
        del value
        return cls.OTHER


class CardHealth(NamedTuple):
    """State, cause and sentence, which belong together."""

    state: State = "ok"
    cause: HealthCause | None = None
    """None: it is ok, or the writer did not say; then nothing is decided by it."""
    why: str | None = None

    @classmethod
    def degraded(cls, cause: HealthCause, why: str) -> CardHealth:
        """No new pods; what runs goes on."""
        return cls("degraded", cause, why)

    @classmethod
    def lost(cls, cause: HealthCause, why: str | None) -> CardHealth:
        """Unusable, for running containers too."""
        return cls("lost", cause, why)

    def __str__(self) -> str:
        """For people: `ok`, `degraded: why`, `lost: why`."""
        return f"{self.state}: {self.why}" if self.why else self.state


OK: Final = CardHealth()
