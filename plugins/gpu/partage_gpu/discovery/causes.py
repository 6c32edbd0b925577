"""Causes of a card's bad health: severity, code and text. Pure; `health` evaluates them over time.

XIDs, the driver's error numbers, are classified by NVIDIA's catalog with its immediate actions, and by what NVIDIA's
device plugin ignores. A card with an unlisted XID is degraded for a while. States that NVML reports itself (rows that
wait for a reset, changed advice of the driver) are left to NVML's reports.

Texts are published in the inventory, so they are stable: no figures and no times, or the inventory would keep changing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from partage_gpu.nvml.facts import CardFacts, Trouble
from partage_plugins.api.health import CardHealth, HealthCause
from partage_plugins.text import printable

LONGEST_REASON: Final = 256
"""As the inventory allows."""


class Gravity(IntEnum):
    """The severity of a cause, and what ends it."""

    WATCHED = 0
    """Nothing is wrong any more; ends after a quiet period."""
    PASSING = 1
    """A transient event; ends after a quiet period."""
    RESET = 2
    """An event that only a reset of the card clears; ends when a reset was seen, after a quiet period."""
    WANTS_RESET = 3
    """The driver asks for a reset; ends when it no longer does, after a quiet period."""
    WORN = 4
    """The card must be replaced; ends as above."""
    LOST = 5
    """The card can't be used; ends when the driver shows it again, after a quiet period."""
    FELL_OFF = 6
    """As above, but the reason is known; its text is kept."""


@dataclass(frozen=True)
class Cause:
    """One cause of bad health."""

    gravity: Gravity
    code: HealthCause
    words: str

    @property
    def is_lost(self) -> bool:
        """Whether the card can't be used."""
        return self.gravity >= Gravity.LOST

    @property
    def health(self) -> CardHealth:
        """The health of a card with this cause."""
        return CardHealth("lost" if self.is_lost else "degraded", self.code, self.words)

    @property
    def is_sign(self) -> bool:
        """Whether the driver reports it as long as it lasts; all others are remembered."""
        return self.gravity >= Gravity.WANTS_RESET


@dataclass(frozen=True)
class Away:
    """The card is missing from the driver's report."""

    because: str
    code: HealthCause = HealthCause.FAULT


CAME_BACK: Final = Cause(Gravity.WATCHED, HealthCause.RECOVERING, "came back, being watched")
MEMORY_ERROR: Final = Cause(
    Gravity.PASSING, HealthCause.MEMORY_ERROR, "an error of memory that ECC could not correct; being watched"
)
WANTS_RESET: Final = Cause(
    Gravity.WANTS_RESET, HealthCause.NEEDS_RESET, "the driver asks for a reset; drain the node and reset the card"
)
WORN: Final = Cause(
    Gravity.WORN, HealthCause.WORN, "no spare rows of memory are left; drain the node and have the card replaced"
)
BLIND: Final = CardHealth.degraded(
    HealthCause.BLIND,
    "NVML does not tell how much memory a process holds of this card, so limits can't be checked;"
    " PARTAGE_GPU_SHARE_BLIND=yes shares it all the same",
)
GONE: Final = Away("the driver no longer shows this card; was it taken out?", HealthCause.GONE)


def signs_of(shown: CardFacts | Away) -> Iterator[Cause]:
    """The causes that one report of a card shows."""
    if isinstance(shown, Away):
        yield Cause(Gravity.LOST, shown.code, plain(shown.because))
        return
    if shown.fault is not None:
        yield Cause(Gravity.LOST, HealthCause.FAULT, plain(shown.fault))
    if shown.row_remap_failed:
        yield WORN
    if shown.needs_reset:
        yield WANTS_RESET


def away_by(trouble: Trouble) -> Away:
    """All cards are away, since the driver reports none. The text omits for how long, to keep the inventory stable."""
    is_silent = trouble.kind in ("hangs", "slow")
    return Away("the NVIDIA driver does not answer" if is_silent else trouble.sentence, HealthCause.DRIVER)


def plain(text: str, longest: int = LONGEST_REASON, *, otherwise: str = "no reason was given") -> str:
    """The text as one printable line of limited length, never empty."""
    line = " ".join(printable(text[: 4 * longest], " ").split())
    short = line or otherwise
    return short if len(short) <= longest else short[: longest - 1] + "…"


HARMLESS: Final[Mapping[int, str]] = {
    11: "a program's commands could not be read",
    13: "an exception of a program's kernel",
    31: "a program touched memory that it does not have",
    43: "a program's work was stopped",
    45: "the driver cleaned up after a program",
    68: "an exception of the video decoder",
    69: "a program called what its class lacks",
    106: "a test message",
    107: "a test message",
    109: "a program's work took too long to be switched away",
    154: "the driver's advice changed; a look shows it",
}
"""A program's own fault, or no fault: the card stays ok."""

_RESET: Final[Mapping[int, str]] = {
    46: "the card stopped working",
    48: "double bit ECC error",
    62: "the card's power controller halted",
    64: "a bad row of memory could not be noted",
    74: "an NVLink failed",
    95: "an error of memory reached several programs",
    110: "a fault of security",
    119: "the card's own processor does not answer",
    120: "an error of the card's own processor",
    136: "the NVLinks could not be trained",
    140: "an error of memory that ECC could not correct",
    143: "the card could not be initialised",
    151: "the keys of confidential computing could not be renewed",
    155: "an NVLink failed",
    156: "a part of the card was retired",
    158: "the card did not answer in time",
}
"""Only a reset clears these."""

_PASSING: Final[Mapping[int, str]] = {
    8: "the card stopped a program's work",
    54: "a power cable is not connected; look at the card",
    63: "a bad row of memory was noted",
    78: "a vGPU could not be started",
    92: "many errors of memory were corrected",
    94: "an error of memory was contained to one program",
}
"""Transient or informational: these cards are watched."""

_FELL_OFF: Final = 79
RESET_ADVICE: Final = "drain the node and reset the card"


def cause_of(number: int, harmless: frozenset[int] = frozenset()) -> Cause | None:
    """The cause of an XID; None if it is harmless. `harmless` are further XIDs to ignore."""
    if number in HARMLESS or number in harmless:
        return None
    if number == _FELL_OFF:
        words = f"XID {number}: the card fell off the bus; drain the node and restart it"
        return Cause(Gravity.FELL_OFF, HealthCause.FELL_OFF, words)
    if (what := _RESET.get(number)) is not None:
        return Cause(Gravity.RESET, HealthCause.XID_RESET, f"XID {number}: {what}; {RESET_ADVICE}")
    what = _PASSING.get(number, "an error of the card; the kernel's log says more")
    return Cause(Gravity.PASSING, HealthCause.XID, f"XID {number}: {what}")
