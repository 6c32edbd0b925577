"""Detects whether files have changed, from their `stat` results.

A container waits for this: so a file is read again only if something about it changed. A change within the last moments
is not settled, since a change right after it would not show; neither is one whose time is in the future, after the
clock was set back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Final

_SETTLED_NS: Final = 1_000_000_000
Facts = tuple[int, int, int] | None
"""The values that differ if a file or folder changed in any way; None if there is none."""


def facts_of(path: str, *, follows: bool = True) -> Facts:
    """The facts of the file at this path; of a link's target, unless links are not followed."""
    try:
        status = os.stat(path, follow_symlinks=follows)  # noqa: PTH116  as plain strings these looks cost half
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def are_settled(facts: Iterable[Facts]) -> bool:
    """Whether any later change will show; the facts must have been taken just now."""
    before_ns = time.time_ns() - _SETTLED_NS
    return all(each is None or each[2] < before_ns for each in facts)
