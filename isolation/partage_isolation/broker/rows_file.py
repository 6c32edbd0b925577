"""The file of rows: mapped into memory, so that what was written is there however the broker ends.

It is made whole, with all its room, before it has its name: a page that the file system has no room for would end the
process when it is first written. One that is not ours, damaged, or of another boot is not read; a damaged one is set
aside for whoever wants to know, and `lost` says that the books begin empty though containers may run.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_isolation.broker.containers import Process
from partage_isolation.broker.piece_rows import PieceRow, rows_of
from partage_isolation.broker.pieces import Piece
from partage_isolation.broker.rows import PLACE_BYTES, Damaged, Row, pack_empty, pack_piece, pack_row, read_row
from partage_isolation.broker.wire import NO_CARD
from partage_isolation.errors import NoRows
from partage_plugins.vocabulary.names import ContainerKey

ROWS: Final = 32768
_MAGIC: Final = b"partage rows\0\0\0\0"
_LAYOUT: Final = 1
_HEADER: Final = struct.Struct("<16sIIII32s")
"""Magic, layout, bytes of a place, rows, unused, boot."""
_HEADER_BYTES: Final = 4096
_LARGEST_PLACE: Final = 4096

Name = tuple[ContainerKey, int, int, int]
"""Of a row: container, pid, start, card."""
PieceName = tuple[ContainerKey, int, int, int, int, int]
"""Of one that says what a process holds of a piece: also the name, and whether it made it."""


class RowsFile:
    """A `keeper.Keeper`."""

    def __init__(self, path: Path, *, boot: str, rows: int = ROWS) -> None:
        """Opens it, or makes a new one; raises `NoRows`."""
        self.path = path
        self.lost = ""
        """What was wrong with what was found; empty: nothing."""
        self._slots: dict[Name | PieceName, int] = {}
        self._pieces: dict[Piece, set[PieceName]] = {}
        self._numbers: dict[int, int] = {}
        self._cards: dict[tuple[ContainerKey, int, int], set[int]] = {}
        self._boot = boot.encode()[:32].ljust(32, b"\0")
        self._found: list[Row] = []
        self._found_pieces: list[PieceRow] = []
        try:
            self._map = self._opened(rows)
        except OSError as error:
            raise NoRows(f"cannot keep the books in {path}: {error.strerror}; make room there, or remove it") from error
        self._free = [slot for slot in reversed(range(self._rows)) if slot not in self._taken]

    def close(self) -> None:
        """What was written stays."""
        self._map.close()

    def found(self) -> tuple[Row, ...]:
        """What an earlier broker left; once."""
        found, self._found = tuple(self._found), []
        return found

    def found_pieces(self) -> tuple[PieceRow, ...]:
        """What it left of pieces; once."""
        found, self._found_pieces = tuple(self._found_pieces), []
        return found

    @property
    def free(self) -> int:
        """How many more rows there is room for."""
        return len(self._free)

    # ---- As a keeper -------------------------------------------------------------------------------------------------

    def keep(self, process: Process, card: int | None = None) -> bool:
        """Writes it down; False where there is no room."""
        name = _name(process, card)
        slot = self._slots.get(name)
        if slot is None:
            if not self._free:
                return False
            slot = self._slots[name] = self._free.pop()
            self._cards.setdefault(name[:3], set()).add(name[3])
        number = self._next(slot)
        self._write(slot, number, pack_row(number, process, card, place_bytes=self._place_bytes))
        return True

    def drop(self, process: Process, card: int | None = None) -> None:
        """Forgets it; the process itself last, since the others mean nothing without."""
        who = _name(process, None)[:3]
        known = self._cards.get(who, set())
        for each in sorted(known) if card is None else [card]:
            self.erase((*who, each))

    def keep_piece(self, key: ContainerKey, piece: Piece) -> bool:
        """Writes down all that it is now; False where there is no room for all of it. What is no more goes last."""
        rows = {row.place: row for row in rows_of(key, piece)}
        before = self._pieces.pop(piece, set())
        is_whole = sum(map(self._keep_row, rows.values())) == len(rows)
        for name in before - rows.keys():
            self.erase_piece(name)
        if rows:
            self._pieces[piece] = set(rows)
        return is_whole

    def restored(self, key: ContainerKey, piece: Piece) -> None:
        """It is one of those that were found."""
        self._pieces[piece] = {row.place for row in rows_of(key, piece)}

    def _keep_row(self, row: PieceRow) -> bool:
        slot = self._slots.get(row.place)
        if slot is None:
            if not self._free:
                return False
            slot = self._slots[row.place] = self._free.pop()
        number = self._next(slot)
        self._write(slot, number, pack_piece(number, row, place_bytes=self._place_bytes))
        return True

    def erase_piece(self, name: PieceName) -> None:
        """Forgets one row of a piece."""
        slot = self._slots.pop(name, None)
        if slot is not None:
            number = self._next(slot)
            self._write(slot, number, pack_empty(number, place_bytes=self._place_bytes))
            self._free.append(slot)

    def erase(self, name: Name) -> None:
        """Forgets one row."""
        slot = self._slots.pop(name, None)
        if slot is None:
            return
        number = self._next(slot)
        self._write(slot, number, pack_empty(number, place_bytes=self._place_bytes))
        self._free.append(slot)
        cards = self._cards[name[:3]]
        cards.discard(name[3])
        if not cards:
            del self._cards[name[:3]]

    def _next(self, slot: int) -> int:
        number = self._numbers[slot] = self._numbers.get(slot, 0) + 1
        return number

    def _write(self, slot: int, number: int, place: bytes) -> None:
        """To the place of the older version: numbers alternate between the two."""
        at = _HEADER_BYTES + (2 * slot + (number & 1)) * self._place_bytes
        self._map[at : at + self._place_bytes] = place

    # ---- Opening -----------------------------------------------------------------------------------------------------

    def _opened(self, rows: int) -> mmap.mmap:
        self._place_bytes, self._rows = PLACE_BYTES, rows
        self._taken: set[int] = set()
        found = self._mapped_as_found()
        if found is not None:
            self._read(found)
            return found
        return self._made()

    def _mapped_as_found(self) -> mmap.mmap | None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            why = self._why_not(descriptor)
            if why is None:
                return mmap.mmap(descriptor, _HEADER_BYTES + 2 * self._place_bytes * self._rows)
        finally:
            os.close(descriptor)
        if why:
            self.lost = why
            self.set_aside()
        return None

    def _why_not(self, descriptor: int) -> str | None:
        """Why it can't be read; empty where it may be forgotten without harm. Notes its sizes."""
        status = os.fstat(descriptor)
        header = os.pread(descriptor, _HEADER_BYTES, 0)
        if len(header) < _HEADER.size:
            return "it is cut off"
        magic, layout, place_bytes, rows, _, boot = _HEADER.unpack_from(header)
        if magic != _MAGIC:
            return "it is no file of rows"
        if boot != self._boot:
            return ""  # no process of that boot lives
        if layout != _LAYOUT or not PLACE_BYTES <= place_bytes <= _LARGEST_PLACE:
            return f"its layout is {layout} with places of {place_bytes} bytes; this broker reads layout {_LAYOUT}"
        if status.st_size < _HEADER_BYTES + 2 * place_bytes * rows or not rows:
            return "it is cut off"
        self._place_bytes, self._rows = place_bytes, rows
        return None

    def set_aside(self) -> None:
        """Under another name, so that the next start does not find it."""
        self.path.rename(self.path.with_name(f"{self.path.name}.damaged"))

    def _read(self, rows: mmap.mmap) -> None:
        damaged = 0
        unused = bytes(2 * self._place_bytes)
        for slot in range(self._rows):
            at = _HEADER_BYTES + slot * len(unused)
            if rows[at : at + len(unused)] == unused:
                continue  # most are
            try:
                self._read_slot(rows, slot)
            except Damaged:
                damaged += 1
                self._taken.add(slot)  # stays as it is until the file is made anew
        if damaged:
            self.lost = f"{damaged} of its rows are damaged"

    def _read_slot(self, rows: mmap.mmap, slot: int) -> None:
        at, size = _HEADER_BYTES + 2 * slot * self._place_bytes, self._place_bytes
        number, place, row = read_row((rows[at : at + size], rows[at + size : at + 2 * size]))
        if number == 0:
            return
        if number & 1 != place:
            raise Damaged
        self._numbers[slot] = number
        if isinstance(row, PieceRow):
            self._slots[row.place] = slot
            self._taken.add(slot)
            self._found_pieces.append(row)
        elif row is not None:
            name = (row.key, row.pid, row.start, row.card)
            self._slots[name] = slot
            self._cards.setdefault(name[:3], set()).add(row.card)
            self._taken.add(slot)
            self._found.append(row)

    def _made(self) -> mmap.mmap:
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        length = _HEADER_BYTES + 2 * PLACE_BYTES * self._rows
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, length)
            os.pwrite(descriptor, _HEADER.pack(_MAGIC, _LAYOUT, PLACE_BYTES, self._rows, 0, self._boot), 0)
            mapped = mmap.mmap(descriptor, length)
            new.rename(self.path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return mapped


def _name(process: Process, card: int | None) -> Name:
    return process.key, process.pid, process.start, NO_CARD if card is None else card


def grouped(rows: tuple[Row, ...]) -> Iterator[tuple[Row, dict[int, Row]]]:
    """Each process's row with its rows by card; rows without a process belong to nobody and are left out."""
    by_process: dict[tuple[ContainerKey, int, int], dict[int, Row]] = {}
    for row in rows:
        by_process.setdefault((row.key, row.pid, row.start), {})[row.card] = row
    for cards in by_process.values():
        own = cards.pop(NO_CARD, None)
        if own is not None:
            yield own, cards
