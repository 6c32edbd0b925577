"""A child process that leads a group of its own, so that what it starts ends with it.

Both supervisors stand on this: the one of node plugins and the one of NVML. From any threads; nothing here waits for
longer than said, since a process that hangs in a driver may not even die when it is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import Any


class ProcessGroup:
    def __init__(self, process: subprocess.Popen[Any]) -> None:
        """`process` was started in a session of its own."""
        self._process = process
        self._reaping = threading.Lock()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        """Whether it is a process no more; a dead one is reaped by this question."""
        with self._reaping:
            return self._process.poll() is not None

    @property
    def status(self) -> int | None:
        """As the kernel has it, once it is reaped; the negative number of a signal."""
        return self._process.returncode

    def has_exited(self, *, waits: bool = False) -> bool:
        """Whether its own status can be seen; not reaped yet, its number is still that of its group."""
        options = os.WEXITED | os.WNOWAIT | (0 if waits else os.WNOHANG)
        try:
            return os.waitid(os.P_PID, self.pid, options) is not None
        except ChildProcessError:  # it is reaped already
            return True

    def kill(self) -> None:
        """Kills the whole group, unless the child is reaped: its number may be another's by then."""
        with self._reaping, contextlib.suppress(ProcessLookupError):
            if self._process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)

    def reap(self, timeout_s: float | None = None) -> str | None:
        """How it ended; None where it does not end in time."""
        with self._reaping:
            try:
                status = self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return None
        return how_ended(status)


def how_ended(status: int) -> str:
    """A status as the kernel has it, in words; the negative number of a signal."""
    if status >= 0:
        return f"exited with {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-status}"
