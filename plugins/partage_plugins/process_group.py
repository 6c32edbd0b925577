"""A child process that leads its own process group, so that its descendants are killed with it.

Both supervisors use it: that of node plugins and that of NVML. Methods may be called from any thread and never block
longer than stated, since a process that hangs in a driver may not even die when it is killed.
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
        """`process` must have been started in a session of its own."""
        self._process = process
        self._reaping = threading.Lock()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_dead(self) -> bool:
        """Whether the process has ended; if so, reading this reaps it."""
        with self._reaping:
            return self._process.poll() is not None

    @property
    def status(self) -> int | None:
        """The exit status, once it is reaped; negative for a signal."""
        return self._process.returncode

    def has_exited(self, *, waits: bool = False) -> bool:
        """Whether the child has exited, without reaping it: until it is reaped, its pid still identifies its group."""
        options = os.WEXITED | os.WNOWAIT | (0 if waits else os.WNOHANG)
        try:
            return os.waitid(os.P_PID, self.pid, options) is not None
        except ChildProcessError:  # already reaped
            return True

    def kill(self) -> None:
        """Kills the whole group, unless the child is reaped: its pid may have been reused by then."""
        with self._reaping, contextlib.suppress(ProcessLookupError):
            if self._process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)

    def reap(self, timeout_s: float | None = None) -> str | None:
        """A description of its end; None if it does not end in time."""
        with self._reaping:
            try:
                status = self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return None
        return how_ended(status)


def how_ended(status: int) -> str:
    """Describes an exit status, which is negative for a signal."""
    if status >= 0:
        return f"exited with {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-status}"
