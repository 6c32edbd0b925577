"""A process that stays the same one, whatever becomes of its number."""

from __future__ import annotations

import os


def process_descriptor(pid: int) -> int | None:
    """Readable when it has ended; None where there is no such process."""
    try:
        return os.pidfd_open(pid)
    except (ProcessLookupError, FileNotFoundError):  # the second while it is reaped, on newer kernels
        return None
