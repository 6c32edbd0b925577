"""Runs the search in a child process, so that an input that kills the process is not lost.

The child records each input in shared memory before running it. If a signal kills the child (a crash in C code, the
kernel short of memory), or if it is stuck on one input and even the alarm does not interrupt it, the input is there.
"""

import mmap
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Final

from fuzz.engine.execution import Failure

_POLL_SECONDS: Final = 0.02
_HEADER: Final = 16


class Journal:
    """The current input, and the number of inputs before it."""

    def __init__(self, longest_bytes: int) -> None:
        self._memory = mmap.mmap(-1, _HEADER + longest_bytes)
        self._count = 0

    def note(self, data: bytes) -> None:
        self._count += 1
        self._memory[_HEADER : _HEADER + len(data)] = data
        self._memory[:_HEADER] = self._count.to_bytes(8, "big") + len(data).to_bytes(8, "big")

    def count(self) -> int:
        """The number of inputs recorded, including those of the child."""
        return int.from_bytes(self._memory[:8], "big")

    def data(self) -> bytes:
        return self._memory[_HEADER : _HEADER + int.from_bytes(self._memory[8:_HEADER], "big")]


def supervised(work: Callable[[], int], journal: Journal, *, stalled_s: float) -> int | Failure:
    """The result of `work` in a child process, or the input that killed it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _be_the_child(work)
    try:
        status = _waited_for(child, journal, stalled_s)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    name = signal.Signals(os.WTERMSIG(status)).name
    return Failure("killed", f"the process was ended by {name} on this input", journal.data())


def _be_the_child(work: Callable[[], int]) -> None:
    status = 1
    try:
        status = work()
    except BaseException:  # noqa: BLE001 - a child must not return into its parent's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _waited_for(child: int, journal: Journal, stalled_s: float) -> int:
    count, since = journal.count(), time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if journal.count() != count:
            count, since = journal.count(), time.monotonic()
        elif count and time.monotonic() - since > stalled_s:
            os.kill(child, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
