"""Scheduling policies: who runs next on a card, for how long, and at what cost. Small and pure; selected by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from partage_isolation.timeslices.durations import Timing
from partage_isolation.timeslices.policies.gemini import Gemini
from partage_isolation.timeslices.policies.policy import FreeRun, Policy
from partage_isolation.timeslices.policies.virtual_time import Caps, VirtualTime

__all__ = ["DEFAULT", "NAMES", "Gemini", "Policy", "by_name"]

_MADE: Final[Mapping[str, Callable[[Timing, Gemini], Policy]]] = {
    "virtual-time": lambda timing, _: VirtualTime(timing),
    "caps": lambda timing, _: Caps(timing),
    "gemini": lambda _, gemini: gemini,
    "free-run": lambda _timing, _gemini: FreeRun(),
}

DEFAULT: Final = "virtual-time"
NAMES: Final = tuple(_MADE)


def by_name(name: str, timing: Timing = Timing(), gemini: Gemini = Gemini()) -> Policy:  # noqa: B008 - both are frozen
    return _MADE[name](timing, gemini)
