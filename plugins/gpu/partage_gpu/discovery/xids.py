"""Decides what an XID, an error that the driver reports, means for the card. Pure.

By NVIDIA's catalog of XIDs, with what it says must be done at once, and by what NVIDIA's device plugin passes over. A
number that is not listed is not trusted for a while. What a look shows better by itself (rows that wait for a reset,
a changed advice of the driver) is left to the look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partage_gpu.discovery.causes import Cause, Gravity
from partage_plugins.vocabulary.health import HealthCause

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
"""The program's own fault, or no fault: the card goes on."""

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
"""Only a reset mends these."""

_PASSING: Final[Mapping[int, str]] = {
    8: "the card stopped a program's work",
    54: "a power cable is not connected; look at the card",
    63: "a bad row of memory was noted",
    78: "a vGPU could not be started",
    92: "many errors of memory were corrected",
    94: "an error of memory was contained to one program",
}
"""It is over, or only told: these cards are watched."""

_FELL_OFF: Final = 79
RESET_ADVICE: Final = "drain the node and reset the card"


def cause_of(number: int, harmless: frozenset[int] = frozenset()) -> Cause | None:
    """What it means; None: nothing. `harmless` are further numbers to pass over."""
    if number in HARMLESS or number in harmless:
        return None
    if number == _FELL_OFF:
        words = f"XID {number}: the card fell off the bus; drain the node and restart it"
        return Cause(Gravity.FELL_OFF, HealthCause.FELL_OFF, words)
    if (what := _RESET.get(number)) is not None:
        return Cause(Gravity.RESET, HealthCause.XID_RESET, f"XID {number}: {what}; {RESET_ADVICE}")
    what = _PASSING.get(number, "an error of the card; the kernel's log says more")
    return Cause(Gravity.PASSING, HealthCause.XID, f"XID {number}: {what}")
