"""Confines a process that runs plugins: it dies with its parent, prints to stderr, and has bounded memory."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def confine(memory_bytes: int) -> None:
    """Dies with the parent, leaves the terminal's signals to it, keeps plugins off stdout, and bounds memory."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
