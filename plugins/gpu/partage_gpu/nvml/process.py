"""One child process from its start to its end: starts it, hears it in a thread, ends it whatever it is doing.

Nothing here blocks on the child for longer than said: a process that hangs in the driver may not even die when it is
killed. What it writes to stderr, as the driver's library does, becomes lines of our log. The child notices by its
socket that its parent is gone, and ends itself.
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
"""Of our environment; a process that loads the driver's library needs no more."""
_REAP_S: Final = 1.0
_DYING_S: Final = 0.25
_JOIN_S: Final = 3 * _REAP_S
_LONGEST_LINE: Final = 400
_PIECE_BYTES: Final = 4096
_LAST_PIECES: Final = 32
"""Of a process that closed its socket: as much as two full pipes, so one that goes on writing does not hold us."""
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
        """Raises OSError or RuntimeError where there is no process, descriptor or thread to be had.

        `hears` is called for every message, and `ends` once with how it ended, both in the thread that hears the child.
        `ends` is not where it was `end` that ended it.
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
        """Whether it is a process no more; a dead one is reaped by this question."""
        return self._group.is_dead

    def send(self, question: Q) -> None:
        """Asks; whether it hears that is its own business."""
        with self._sending, contextlib.suppress(OSError):  # it may be dead, its thread will say so
            self._socket.send(self._words.encoded(question), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def kill(self) -> None:
        """Kills it and what it started; its thread sees to the rest."""
        self._is_ending = True
        self._group.kill()
        with self._sending, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, even where the child cannot be killed

    def end(self) -> None:
        """Kills it and waits. Afterwards nothing is left of it, or `is_dead` says that it could not be killed."""
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
        """Hears it until it closes its end; answers why we don't want to hear more, if that was the cause."""
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
        """One packet; nothing once it has closed its end and all that it said before is heard."""
        try:
            return self._socket.recv(MAX_BYTES + 1)
        except ConnectionResetError:  # it died with a question unread; the kernel tells that first, and once
            return self._socket.recv(MAX_BYTES + 1)

    def _close(self) -> None:
        with self._sending:
            self._socket.close()
        self._stderr.close()

    def _kill_and_reap(self) -> str:
        """How it ended. A child that closed its socket is dying, and is helped; one that cannot die is left."""
        until = time.monotonic() + _DYING_S
        while not self._group.has_exited() and time.monotonic() < until:
            time.sleep(_DYING_S / 50)
        self._group.kill()
        how = self._group.reap(_REAP_S)
        if how is None:
            _log.error("process %d hangs in the NVIDIA driver and cannot be killed; it is left behind", self.pid)
        return how or "closed its socket and does not end"


class _Lines:
    """Makes lines of the log of what the child writes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._rest = b""

    def read(self, descriptor: int) -> bool:
        """One piece; False at its end."""
        piece = os.read(descriptor, _PIECE_BYTES)
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]
        for line in lines:
            self._say(line)
        return bool(piece)

    def end(self, descriptor: int) -> None:
        """What is left in the pipe, and what came without an end: the socket often closes before all is read."""
        os.set_blocking(descriptor, False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(_LAST_PIECES):
                if not self.read(descriptor):
                    break
        self._say(self._rest)

    def _say(self, line: bytes) -> None:
        text = line[:_LONGEST_LINE].decode(errors="replace").strip()
        if text:
            _log.warning("the process %d that asks the driver says: %s", self._pid, repr(text)[1:-1])


def _started(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        process = subprocess.Popen(  # noqa: S603  our own modules
            command,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,  # a terminal's signals are for us, and what the library starts ends with it
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours
