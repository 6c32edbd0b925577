"""Confines a process that runs plugins: it dies with its parent, writes only to stderr, and has a memory limit."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def confine(memory_bytes: int) -> None:
    """Makes the process die with its parent, ignore the terminal's SIGINT, print to stderr, and limits its memory."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
