"""The file of rows as slots: mapped into memory, so that what was written is there however the broker ends.

It is made whole, with all its room, before it has its name: a page that the file system has no room for would end the
process when it is first written. One that is not ours, damaged, or of another boot is not read; a damaged one is set
aside for whoever wants to know, and `lost` says that the books begin empty though containers may run.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final, Protocol

from partage_isolation.broker.piece_rows import PieceRow
from partage_isolation.broker.rows import PLACE_BYTES, Damaged, Row, pack_empty, read_row
from partage_isolation.broker.rows_header import HEADER_BYTES, Shape, pack_header, read_header
from partage_isolation.errors import NoRows

_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC


class Pack(Protocol):
    """Makes a place of a row."""

    def __call__(self, number: int, /, *, place_bytes: int) -> bytes:
        """Of that version of the row."""
        ...


class Slots:
    """As many rows as the file has room for, by number."""

    def __init__(self, path: Path, *, boot: str, rows: int) -> None:
        """Opens it, or makes a new one; raises `NoRows`."""
        self._path, self._boot = path, boot
        self.lost = ""
        """What was wrong with what was found; empty: nothing."""
        self.found: dict[int, Row | PieceRow] = {}
        """What an earlier broker left."""
        self._shape, self._numbers = Shape(PLACE_BYTES, rows), dict[int, int]()
        self._damaged = set[int]()
        try:
            self._map = self._as_found() or self._made()
        except OSError as error:
            raise NoRows(f"cannot keep the books in {path}: {error.strerror}; make room there, or remove it") from error
        taken = self.found.keys() | self._damaged
        self._free = [slot for slot in reversed(range(self._shape.rows)) if slot not in taken]

    def close(self) -> None:
        """What was written stays."""
        self._map.close()

    @property
    def free(self) -> int:
        """How many more rows there is room for."""
        return len(self._free)

    def take(self) -> int | None:
        """An empty slot; None where there is none."""
        return self._free.pop() if self._free else None

    def write(self, slot: int, pack: Pack) -> None:
        """To the place of the older version: numbers alternate between the two."""
        number = self._numbers[slot] = self._numbers.get(slot, 0) + 1
        at, size = self._shape.at(slot, number & 1), self._shape.place_bytes
        self._map[at : at + size] = pack(number, place_bytes=size)

    def empty(self, slot: int) -> None:
        """Nothing is in it any more."""
        self.write(slot, pack_empty)
        self._free.append(slot)

    # ---- Opening -----------------------------------------------------------------------------------------------------

    def _as_found(self) -> mmap.mmap | None:
        try:
            descriptor = os.open(self._path, _FLAGS | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            header, length = os.pread(descriptor, HEADER_BYTES, 0), os.fstat(descriptor).st_size
            shape = read_header(header, self._boot, length)
            if isinstance(shape, Shape):
                return self._read(mmap.mmap(descriptor, shape.length), shape)
        finally:
            os.close(descriptor)
        if shape:
            self.lost = shape
            self._path.rename(self._path.with_name(f"{self._path.name}.damaged"))
        return None

    def _read(self, rows: mmap.mmap, shape: Shape) -> mmap.mmap:
        self._shape = shape
        unused = bytes(2 * shape.place_bytes)
        for slot in range(shape.rows):
            at = shape.at(slot)
            if rows[at : at + len(unused)] != unused:  # most are
                self._read_slot(slot, (rows[at : shape.at(slot, 1)], rows[shape.at(slot, 1) : at + len(unused)]))
        if self._damaged:
            self.lost = f"{len(self._damaged)} of its rows are damaged"
        return rows

    def _read_slot(self, slot: int, places: tuple[bytes, bytes]) -> None:
        version = _version_in(places)
        if version is None:
            self._damaged.add(slot)  # stays as it is until the file is made anew
            return
        self._numbers[slot], row = version
        if row is not None:
            self.found[slot] = row

    def _made(self) -> mmap.mmap:
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        descriptor = os.open(new, _FLAGS | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._shape.length)
            os.pwrite(descriptor, pack_header(self._shape, self._boot), 0)
            mapped = mmap.mmap(descriptor, self._shape.length)
            new.rename(self._path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return mapped


def _version_in(places: tuple[bytes, bytes]) -> tuple[int, Row | PieceRow | None] | None:
    """The number, and the row if there is one; None where it is damaged."""
    try:
        number, place, row = read_row(places)
    except Damaged:
        return None
    return (number, row) if number & 1 == place else None
