"""Waits with a deadline, whose failure says what was waited for and what was seen instead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rig.errors import NeverHappened

PATIENCE_S: Final = 90.0
_LOOK_EVERY_S: Final = 0.05


def until(what: str, why_not: Callable[[], str | None], within_s: float = PATIENCE_S) -> None:
    """Waits until `why_not` has nothing to say. It raises `NeverHappened` itself once there is no hope."""
    deadline = time.monotonic() + within_s
    while (why := why_not()) is not None:
        if time.monotonic() > deadline:
            raise NeverHappened(f"{what}: not within {within_s:g} s; last seen: {why}")
        time.sleep(_LOOK_EVERY_S)
