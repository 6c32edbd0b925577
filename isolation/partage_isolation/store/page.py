"""The page of a container: a line of 64 bytes for each card, which the broker writes and its processes read.

A line says whether the container may launch work on the card now. The page is sealed, so that no process that is given
it can write it or make it shorter; not the next broker either, which makes a new one.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from typing import Final

from partage_isolation.leases.line import LINE_BYTES
from partage_isolation.library.pages import WriteLine

_F_ADD_SEALS: Final = 1033
_SEAL: Final = 0x1
_SHRINK: Final = 0x2
_GROW: Final = 0x4
_FUTURE_WRITE: Final = 0x10
_MOST_CARDS: Final = 64
"""That the library knows; so the page of a container that is given more cards later has room for them."""


class Page:
    """Of one container, until it is closed. All zeros at first: closed."""

    def __init__(self, cards: int, write: WriteLine) -> None:
        self._write = write
        self.descriptor = os.memfd_create("partage-page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            length = max(mmap.PAGESIZE, max(cards, _MOST_CARDS) * LINE_BYTES)
            os.ftruncate(self.descriptor, length)
            self._map = mmap.mmap(self.descriptor, length)
            self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
            fcntl.fcntl(self.descriptor, _F_ADD_SEALS, _SHRINK | _GROW | _FUTURE_WRITE | _SEAL)
        except BaseException:
            os.close(self.descriptor)
            raise
        self._lines = length // LINE_BYTES

    def write(self, line: int, word: int, *, wake: bool) -> None:
        """The line of the card of that number; `wake` where a thread may sleep there."""
        if not 0 <= line < self._lines:
            raise IndexError(f"a page of {self._lines} lines has no line {line}")
        self._write(self._address + line * LINE_BYTES, word, wake)

    def close(self) -> None:
        """Who was given it keeps it as it is."""
        self._lines = 0  # no write goes where another map may lie by then
        self._map.close()
        os.close(self.descriptor)
