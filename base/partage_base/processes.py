"""Process descriptors, which stay valid if the pid is reused."""

from __future__ import annotations

import os


def process_descriptor(pid: int) -> int | None:
    """A pidfd, readable when the process has ended; None if there is no such process."""
    try:
        return os.pidfd_open(pid)
    except (ProcessLookupError, FileNotFoundError):  # the second one while it is reaped, on newer kernels
        return None
