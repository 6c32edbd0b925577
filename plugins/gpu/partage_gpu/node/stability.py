"""Whether files are as they were, from what `stat` says of them.

A container waits while this looks: so what was read once is read again only where something about it changed. What
changed within the last moments is not settled, since a change that comes right after would not show; nor is what seems
to come from the future, after somebody set the clock back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Final

_SETTLED_NS: Final = 1_000_000_000
Facts = tuple[int, int, int] | None
"""What differs when a file or folder changed in any way; None where there is none."""


def facts_of(path: str, *, follows: bool = True) -> Facts:
    """What stands at this path now; of a link what it leads to, unless it is not to be followed."""
    try:
        status = os.stat(path, follow_symlinks=follows)  # noqa: PTH116  as plain strings these looks cost half
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def are_settled(facts: Iterable[Facts]) -> bool:
    """Whether any later change will show; to be asked of facts that were taken just now."""
    before_ns = time.time_ns() - _SETTLED_NS
    return all(each is None or each[2] < before_ns for each in facts)
