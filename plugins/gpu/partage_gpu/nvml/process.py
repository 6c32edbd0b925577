"""One child process from its start to its end: starts it, reads from it in a thread, and can kill it at any time.

No method blocks on the child for longer than stated: a process that hangs in the driver may not even die when it is
killed. Its stderr, where the driver's library writes, is copied to our log. The child detects by its socket that its
parent is gone, and exits.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Final, Generic, cast

from partage_gpu.nvml.wire import MAX_BYTES, NotUnderstood, Packets, Q, T
from partage_plugins.process_group import ProcessGroup

COMMAND: Final = (sys.executable, "-P", "-m", "partage_gpu.nvml.child")
_OF_PYTHON: Final = ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")
_KEPT: Final = ("PATH", *_OF_PYTHON, "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""Variables that the child inherits; a process that loads the driver's library needs no others."""
_REAP_S: Final = 1.0
_DYING_S: Final = 0.25
_JOIN_S: Final = 3 * _REAP_S
_LONGEST_LINE: Final = 400
_PIECE_BYTES: Final = 4096
_LAST_PIECES: Final = 32
"""Read after a process closed its socket: as much as two full pipes, so that one that keeps writing does not block
us."""
_log: Final = logging.getLogger(__name__)


class ChildProcess(Generic[Q, T]):
    def __init__(
        self,
        command: Sequence[str],
        words: Packets[Q, T],
        *,
        hears: Callable[[T], None],
        ends: Callable[[str], None],
    ) -> None:
        """Raises OSError or RuntimeError if there is no process, descriptor or thread available.

        `hears` is called for every message, and `ends` once with how it ended, both in the thread that reads from the
        child. `ends` is not called if `kill` or `end` ended the child.
        """
        self._words, self._hears, self._ends = words, hears, ends
        self._sending = threading.Lock()
        self._is_ending = False
        self.started = time.monotonic()
        process, self._socket = _started(command)
        self._group, self._stderr = ProcessGroup(process), cast("IO[bytes]", process.stderr)
        self._thread = threading.Thread(target=self._hear, name="partage-nvml-child", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._close()
            self._kill_and_reap()
            raise

    @property
    def pid(self) -> int:
        return self._group.pid

    @property
    def is_dead(self) -> bool:
        """Whether the process has ended; if so, reading this reaps it."""
        return self._group.is_dead

    def send(self, question: Q) -> None:
        """Sends a question; a dead child is not an error here."""
        with self._sending, contextlib.suppress(OSError):  # if it is dead, its thread reports that
            self._socket.send(self._words.encoded(question), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def kill(self) -> None:
        """Kills it and the processes it started; its thread does the rest."""
        self._is_ending = True
        self._group.kill()
        with self._sending, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, even if the child can't be killed

    def end(self) -> None:
        """Kills it and waits. Afterwards nothing is left of it, or `is_dead` reports that it could not be killed."""
        self.kill()
        self._thread.join(_JOIN_S)

    # ---- In the thread -----------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        lines = _Lines(self.pid)
        why = ""
        try:
            why = self._heard_until_silent(lines)
        finally:
            lines.end(self._stderr.fileno())
            self._close()
            how = self._kill_and_reap()
            if not self._is_ending:
                self._ends(why or how)

    def _heard_until_silent(self, lines: _Lines) -> str:
        """Reads until it closes its end; returns a reason if we stopped reading because of an invalid message."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._stderr in ready and not lines.read(self._stderr.fileno()):
                    selector.unregister(self._stderr)
                if self._socket in ready:
                    packet = self._received()
                    if not packet:
                        return ""
                    try:
                        told = self._words.told(packet)
                    except NotUnderstood as error:
                        return f"said what is no message: {error}"
                    self._hears(told)

    def _received(self) -> bytes:
        """One packet; empty once it has closed its end and all earlier packets are read."""
        try:
            return self._socket.recv(MAX_BYTES + 1)
        except ConnectionResetError:  # it died with a question unread; the kernel reports that first, and once
            return self._socket.recv(MAX_BYTES + 1)

    def _close(self) -> None:
        with self._sending:
            self._socket.close()
        self._stderr.close()

    def _kill_and_reap(self) -> str:
        """Returns how it ended. A child that closed its socket is dying, then killed; if it can't die, abandoned."""
        until = time.monotonic() + _DYING_S
        while not self._group.has_exited() and time.monotonic() < until:
            time.sleep(_DYING_S / 50)
        self._group.kill()
        how = self._group.reap(_REAP_S)
        if how is None:
            _log.error("process %d hangs in the NVIDIA driver and cannot be killed; abandoned", self.pid)
        return how or "closed its socket and does not end"


class _Lines:
    """Copies the child's output to the log, line by line."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._rest = b""

    def read(self, descriptor: int) -> bool:
        """Reads one piece; False at the end."""
        piece = os.read(descriptor, _PIECE_BYTES)
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]
        for line in lines:
            self._say(line)
        return bool(piece)

    def end(self, descriptor: int) -> None:
        """Reads the rest of the pipe, and logs an unfinished line: the socket often closes before all is read."""
        os.set_blocking(descriptor, False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(_LAST_PIECES):
                if not self.read(descriptor):
                    break
        self._say(self._rest)

    def _say(self, line: bytes) -> None:
        text = line[:_LONGEST_LINE].decode(errors="replace").strip()
        if text:
            _log.warning("stderr of process %d, which queries the driver: %s", self._pid, repr(text)[1:-1])


def _started(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        process = subprocess.Popen(  # noqa: S603  our own modules
            command,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,  # no terminal's signals, and a group to kill
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours
