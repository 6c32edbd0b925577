"""Policies: who runs next on a card, for how long, and what that costs him. Small and pure; chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from partage_isolation.leasing.policies.caps import Caps
from partage_isolation.leasing.policies.free_run import FreeRun
from partage_isolation.leasing.policies.gemini import Gemini
from partage_isolation.leasing.policies.policy import Policy
from partage_isolation.leasing.policies.virtual_time import VirtualTime
from partage_isolation.leasing.timing import Timing

__all__ = ["DEFAULT", "NAMES", "Policy", "by_name"]

_MADE: Final[Mapping[str, Callable[[Timing], Policy]]] = {
    "virtual-time": VirtualTime,
    "caps": lambda timing: Caps(timing, order=VirtualTime(timing)),
    "gemini": lambda _: Gemini(),
    "free-run": lambda _: FreeRun(),
}

DEFAULT: Final = "virtual-time"
NAMES: Final = tuple(_MADE)


def by_name(name: str, timing: Timing = Timing()) -> Policy:  # noqa: B008 - it is frozen
    """The policy of that name; a `KeyError` where there is none."""
    return _MADE[name](timing)
