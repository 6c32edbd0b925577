"""The page of a container: a line of 64 bytes for each card, which the broker writes and its processes read.

It is for leases of compute time. Nothing is written to it yet: all zero, which means closed. Sealed, so that nobody
who is given it can write it or make it shorter.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Final

LINE_BYTES: Final = 64
_F_ADD_SEALS: Final = 1033
_SEAL: Final = 0x1
_SHRINK: Final = 0x2
_GROW: Final = 0x4
_FUTURE_WRITE: Final = 0x10


class Page:
    """Of one container, until it is closed."""

    def __init__(self, cards: int) -> None:
        self.descriptor = os.memfd_create("partage-page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            length = max(mmap.PAGESIZE, cards * LINE_BYTES)
            os.ftruncate(self.descriptor, length)
            self._map = mmap.mmap(self.descriptor, length)
            fcntl.fcntl(self.descriptor, _F_ADD_SEALS, _SHRINK | _GROW | _FUTURE_WRITE | _SEAL)
        except BaseException:
            os.close(self.descriptor)
            raise

    def close(self) -> None:
        """Who was given it keeps it."""
        self._map.close()
        os.close(self.descriptor)
