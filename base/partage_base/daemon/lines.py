"""Writes log lines to a descriptor without ever failing or holding the daemon.

A reader that is slow, gone or full must not stop a process that kubelet depends on. So a line that can't be written is
lost and counted, and the next one that can says how many were lost. No thread and no O_NONBLOCK (the descriptor may
be shared with others): poll(2) promises room for PIPE_BUF bytes in a pipe and for more in a socket, so pieces of
that size don't block.
"""

from __future__ import annotations

import os
import select
import threading
from typing import Final

_PIECE_BYTES: Final = select.PIPE_BUF
_PATIENCE_MS: Final = 20  # for a reader that is merely a little behind; none once a line was lost


class LineWriter:
    """The way out for whole lines."""

    def __init__(self, descriptor: int) -> None:
        self.lost = 0
        self._descriptor = descriptor
        self._cut = False
        self._turn = threading.RLock()  # reentrant: a finalizer may log while a line is being written

    def write(self, line: bytes) -> bool:
        """Writes `line` and its end; False where it was lost."""
        with self._turn:
            return self._write(line)

    def _write(self, line: bytes) -> bool:
        rest = (b"\n" if self._cut else b"") + line + b"\n"
        patience_ms = 0 if self.lost else _PATIENCE_MS
        while rest:
            written = self._write_piece(rest[:_PIECE_BYTES], patience_ms)
            if not written:
                self.lost += 1
                return False
            rest = rest[written:]
            self._cut = bool(rest)
        return True

    def _write_piece(self, piece: bytes, patience_ms: int) -> int:
        """How many bytes were taken; 0 where none can be."""
        room = select.poll()  # one a piece, since threads can't share it
        room.register(self._descriptor, select.POLLOUT)
        try:
            return os.write(self._descriptor, piece) if room.poll(patience_ms) else 0
        except OSError:
            return 0


def keep_standard_descriptors() -> None:
    """Opens what is closed of 0, 1 and 2: a socket that got the number 2 would receive our log lines."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
