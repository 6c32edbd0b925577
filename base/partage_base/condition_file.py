"""Reads crishim's condition, for other programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.condition import MAX_BYTES, Condition, decode_condition
from partage_plugins.api.places import CRISHIM_CONDITION

_CLOCK_SLACK_S: Final = 2.0


def last_condition(root: Path, *, within_s: float, clock: Callable[[], float]) -> Condition | None:
    """The condition on the node below `root` if it was written within `within_s`; None if it is old or unreadable."""
    try:
        with (root / CRISHIM_CONDITION).open("rb") as file:
            raw, written_s = file.read(MAX_BYTES + 1), os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    return decode_condition(raw) if -_CLOCK_SLACK_S <= clock() - written_s <= within_s else None
