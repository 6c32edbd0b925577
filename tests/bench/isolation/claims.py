"""The page on which racing processes publish their maximal claims: `claims.h` of the programs, for their supervisor."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from types import TracebackType
from typing import Final, Self

SLOTS: Final = 16
_WORD: Final = struct.Struct("=Q")
_LIMIT, _REMOVED, _EXCUSED, _TOTAL, _MINE = range(0, 40, 8)
_BYTES: Final = 1 << 20
_WRAP: Final = 1 << 64


class Claims:
    """Writes the limit, the claims of dead processes, and the excused bytes. The processes write everything else."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        with path.open("w+b") as file:
            file.truncate(_BYTES)
            self._page = mmap.mmap(file.fileno(), _BYTES)
        self._write(_LIMIT, limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._page.close()

    @property
    def now(self) -> int:
        return (self._read(_TOTAL) - self._read(_REMOVED)) % _WRAP

    def of(self, slot: int) -> int:
        return self._read(_MINE + slot * _WORD.size)

    def forget(self, slot: int) -> None:
        """Call once everything that the slot's process had is free again."""
        claimed = self.of(slot)
        self._write(_MINE + slot * _WORD.size, 0)
        self._write(_REMOVED, (self._read(_REMOVED) + claimed) % _WRAP)

    def set_right(self) -> None:
        """Call when no process claims: a process killed between two stores leaves the sum too high."""
        living = sum(map(self.of, range(SLOTS)))
        self._write(_REMOVED, (self._read(_TOTAL) - living) % _WRAP)

    def excuse(self, size: int) -> None:
        """Adds bytes that are out of the broker's reach from now on."""
        self._write(_EXCUSED, size)

    def _read(self, offset: int) -> int:
        value: int = _WORD.unpack_from(self._page, offset)[0]
        return value

    def _write(self, offset: int, value: int) -> None:
        _WORD.pack_into(self._page, offset, value)
