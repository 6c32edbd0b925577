"""Starts, stops and finds the daemon of a simulated node.

A process is signalled only through a pidfd that was verified, after opening, to belong to the process that serves the
node: if its pid has been reused, the other process is never signalled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from partage_base.processes import process_descriptor
from partage_simgpu.control import connected, pid_of
from partage_simgpu.driver_root import SIMGPUD
from partage_simgpu.errors import NodeFailed

LOG: Final = "run/simgpu/log"
LOCK: Final = "run/simgpu/lock"
_READY: Final = b"ready\n"
_READY_S: Final = 30.0
_END_S: Final = 10.0


class Simgpud:
    """A running simgpud. Closing the object releases the pidfd and does not end the process."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended(0)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, if the process still runs."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def stop(self) -> None:
        """Stops it with SIGTERM or, if it does not end, with SIGKILL."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        if not self._ended(_END_S):
            self.send(signal.SIGKILL)
        self.reap()

    def kill(self) -> None:
        """Kills it, as a crash does, and waits until it has ended."""
        self.send(signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        """Waits until it has ended."""
        if not self._ended(_END_S):
            raise NodeFailed(f"simgpud, process {self.pid}, does not end")
        with contextlib.suppress(ChildProcessError):  # another process's child
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)

    def _ended(self, within_s: float) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(within_s * 1000))


def start(root: Path) -> Simgpud:
    """Starts simgpud for this driver root, in a session of its own, and returns once it is ready."""
    log = root / LOG
    ready, told = os.pipe2(os.O_CLOEXEC)
    with log.open("ab") as errors:
        try:
            pid = os.posix_spawn(
                root / SIMGPUD,
                [str(root / SIMGPUD), str(root)],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, told, 1),
                    (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
                ],
                setsid=True,
            )
        except OSError:
            os.close(ready)
            raise
        finally:
            os.close(told)
    daemon = Simgpud(pid, os.pidfd_open(pid))
    try:
        _wait_ready(ready, log)
    except BaseException:
        daemon.kill()
        daemon.close()
        raise
    finally:
        os.close(ready)
    return daemon


def running(root: Path) -> Simgpud | None:
    """Returns the simgpud that serves this driver root, if any."""
    try:
        with connected(root) as peer:
            pid = pid_of(peer)
            pidfd = process_descriptor(pid)
            if pidfd is None:
                return None
            if _hung_up(peer):  # then the pid may have been reused before it was opened
                os.close(pidfd)
                return None
            return Simgpud(pid, pidfd)
    except NodeFailed:
        return None


def is_served(root: Path) -> bool:
    """Whether a simgpud holds the lock of this driver root, even if it does not respond."""
    try:
        lock = os.open(root / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def _wait_ready(pipe: int, log: Path) -> None:
    said = b""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while _READY not in said:
        if not poll.poll(_READY_S * 1000):
            raise NodeFailed(f"simgpud does not get ready; its log is {log}")
        more = os.read(pipe, 256)
        if not more:
            last = log.read_text(errors="replace").splitlines()[-1:] or ["it says nothing"]
            raise NodeFailed(f"simgpud does not start: {last[0]}")
        said += more


def _hung_up(peer: socket.socket) -> bool:
    poll = select.poll()
    poll.register(peer, select.POLLIN | select.POLLHUP)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
