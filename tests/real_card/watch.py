"""Ends what a run left behind once the run is gone, however it ended: `watch.py MARK`, until the end of its input.

A run holds the other end of that pipe, and its processes have the mark in their environment. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

ENDS_S = 10.0


def marked(mark: bytes) -> list[int]:
    """Processes that were started with the mark."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    until = time.monotonic() + ENDS_S
    while (left := marked(sys.argv[1].encode())) and time.monotonic() < until:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return 0


if __name__ == "__main__":
    sys.exit(main())
