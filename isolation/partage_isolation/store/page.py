"""The shared page of a container: a line of 64 bytes for each card, written by the broker and read by its processes.

A line says whether the container may launch work on the card now. The page is sealed, so that no process that receives
it can write it or shrink it; not the next broker either, which makes a new one.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from typing import Final

from partage_isolation.library.pages import WriteLine
from partage_isolation.timeslices.line import LINE_BYTES

_F_ADD_SEALS: Final = 1033
_SEAL: Final = 0x1
_SHRINK: Final = 0x2
_GROW: Final = 0x4
_FUTURE_WRITE: Final = 0x10
_MOST_CARDS: Final = 64
"""The library's maximum, so that the page has room for cards that the container gets later."""


class Page:
    """One container's page, until it is closed. Initially all zeros, which means closed."""

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
        """Write the line of the card of that number; `wake` if a thread may sleep on it."""
        if not 0 <= line < self._lines:
            raise IndexError(f"a page of {self._lines} lines has no line {line}")
        self._write(self._address + line * LINE_BYTES, word, wake)

    def close(self) -> None:
        """Unmap the page; processes that received it keep it as it is."""
        self._lines = 0  # rejects writes: the address may be mapped again for something else
        self._map.close()
        os.close(self.descriptor)
