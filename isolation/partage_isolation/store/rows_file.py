"""The file of rows: a memory-mapped record of what must survive the broker, however it ends.

Each row of a process or of shared memory has its slot. The file is fully allocated before it gets its name: writing a
page for which the file system has no room would kill the process. A file that is not ours, is damaged, or comes from
another boot is not read. A damaged one is set aside, and `lost` reports that the ledger starts empty although
containers may run.
"""

from __future__ import annotations

import mmap
import os
import struct
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from partage_isolation.errors import NoRows
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.pieces import Piece
from partage_isolation.names import BudgetKey
from partage_isolation.store.row_bounds import RowBounds, Sort
from partage_isolation.store.rows import (
    NO_CARD,
    PLACE_BYTES,
    Damaged,
    PieceName,
    PieceRow,
    Row,
    pack_empty,
    pack_piece,
    pack_row,
    read_row,
    rows_of,
)
from partage_plugins.api.names import ContainerKey

HEADER_BYTES: Final = 4096
_MAGIC: Final = b"partage rows\0\0\0\0"
LAYOUT: Final = 1
_HEADER: Final = struct.Struct("<16sIIII32s")
"""Magic, layout, bytes of a version, rows, unused, boot."""
_LARGEST_PLACE: Final = 4096


class Shape(NamedTuple):
    place_bytes: int
    rows: int

    @property
    def length(self) -> int:
        return HEADER_BYTES + 2 * self.place_bytes * self.rows

    def at(self, slot: int, place: int = 0) -> int:
        return HEADER_BYTES + (2 * slot + place) * self.place_bytes


def pack_header(shape: Shape, boot: str) -> bytes:
    return _HEADER.pack(_MAGIC, LAYOUT, shape.place_bytes, shape.rows, 0, _boot(boot))


def read_header(header: bytes, boot: str, length: int) -> Shape | str:
    """The shape, or why a file of that length can't be read; empty where it can be ignored safely."""
    if len(header) < _HEADER.size:
        return "it is cut off"
    magic, layout, place_bytes, rows, _, its_boot = _HEADER.unpack_from(header)
    if magic != _MAGIC:
        return "it is no file of rows"
    if its_boot != _boot(boot):
        return ""  # all its processes are gone
    if layout != LAYOUT or not PLACE_BYTES <= place_bytes <= _LARGEST_PLACE:
        return f"its layout is {layout} with places of {place_bytes} bytes; this broker reads layout {LAYOUT}"
    shape = Shape(place_bytes, rows)
    return shape if rows and length >= shape.length else "it is cut off"


def _boot(boot: str) -> bytes:
    return boot.encode()[:32].ljust(32, b"\0")


_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC


class Pack(Protocol):
    def __call__(self, number: int, /, *, place_bytes: int) -> bytes: ...


class Slots:
    """The file's slots, by number."""

    def __init__(self, path: Path, *, boot: str, rows: int) -> None:
        """Open the file, or create it; raises `NoRows`."""
        self._path, self._boot = path, boot
        self.lost = ""
        """Damage of the found file; empty for none."""
        self.found: dict[int, Row | PieceRow] = {}
        """Rows that an earlier broker left."""
        self._shape, self._numbers = Shape(PLACE_BYTES, rows), dict[int, int]()
        self._damaged = set[int]()
        try:
            self._map = self._as_found() or self._made()
        except OSError as error:
            raise NoRows(f"cannot keep the books in {path}: {error.strerror}; make room there, or remove it") from error
        taken = self.found.keys() | self._damaged
        self._free = [slot for slot in reversed(range(self._shape.rows)) if slot not in taken]

    def close(self) -> None:
        self._map.close()

    @property
    def free(self) -> int:
        return len(self._free)

    def take(self) -> int | None:
        """Take an empty slot; None where there is none."""
        return self._free.pop() if self._free else None

    def write(self, slot: int, pack: Pack) -> None:
        """Overwrite the older of the slot's two versions; numbers alternate between them."""
        number = self._numbers[slot] = self._numbers.get(slot, 0) + 1
        at, size = self._shape.at(slot, number & 1), self._shape.place_bytes
        self._map[at : at + size] = pack(number, place_bytes=size)

    def empty(self, slot: int) -> None:
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
            self._damaged.add(slot)  # left alone until the file is created again
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


ROWS: Final = 32768

Name = tuple[ContainerKey, int, int, int]
"""Key of a row: container, pid, start, card."""
_NAME_PARTS: Final = 4


class RowsFile:
    def __init__(self, path: Path, *, boot: str, rows: int = ROWS) -> None:
        """Open the file, or create it; raises `NoRows`."""
        self._file = Slots(path, boot=boot, rows=rows)
        self._slots: dict[Name | PieceName, int] = {}
        self._pieces: dict[Piece, set[PieceName]] = {}
        self._cards: dict[tuple[ContainerKey, int, int], set[int]] = {}
        self._found: list[Row] = []
        self._found_pieces: list[PieceRow] = []
        self.bounds = RowBounds()
        for slot, row in self._file.found.items():
            self._find(slot, row)
        self._file.found.clear()

    def close(self) -> None:
        self._file.close()

    @property
    def lost(self) -> str:
        """Damage of the found file; empty for none."""
        return self._file.lost

    @property
    def free(self) -> int:
        return self._file.free

    # ---- Restoring ---------------------------------------------------------------------------------------------------

    def found(self) -> tuple[Row, ...]:
        found, self._found = tuple(self._found), []
        return found

    def found_pieces(self) -> tuple[PieceRow, ...]:
        found, self._found_pieces = tuple(self._found_pieces), []
        return found

    def restored(self, key: BudgetKey, piece: Piece, places: set[PieceName]) -> None:
        """Adopt found rows as those of a restored allocation, and rewrite them in this broker's form."""
        self._pieces[piece] = places
        self.keep_piece(key, piece)

    def _find(self, slot: int, row: Row | PieceRow) -> None:
        if isinstance(row, PieceRow):
            self._put(row.place, slot)
            self._found_pieces.append(row)
        else:
            name = (row.key, row.pid, row.start, row.card)
            self._put(name, slot)
            self._note(name)
            self._found.append(row)

    # ---- Rows of processes -------------------------------------------------------------------------------------------

    def keep(self, process: Process, card: int | None = None) -> bool:
        """Store the process or an account; False where there is no room."""
        name = _name(process, card)
        is_new = name not in self._slots
        slot = self._written(name, partial(pack_row, process=process, card=card))
        if is_new and slot is not None:
            self._note(name)
        return slot is not None

    def drop(self, process: Process, card: int | None = None) -> None:
        """Delete an account, or the process with all of them; the process's row last, since the others need it."""
        who = _name(process, None)[:3]
        known = self._cards.get(who, set())
        for each in sorted(known) if card is None else [card]:
            self.erase((*who, each))

    def erase(self, name: Name) -> None:
        if not self._emptied(name):
            return
        cards = self._cards[name[:3]]
        cards.discard(name[3])
        if not cards:
            del self._cards[name[:3]]

    def _note(self, name: Name) -> None:
        self._cards.setdefault(name[:3], set()).add(name[3])

    # ---- Rows of shared memory ---------------------------------------------------------------------------------------

    def keep_piece(self, key: BudgetKey, piece: Piece) -> bool:
        """Store a shared allocation; False where there is no room for all of it. Obsolete rows are erased last.

        New rows reuse slots of obsolete ones: what only changes hands needs no room.
        """
        rows = {row.place: row for row in rows_of(key, piece)}
        gone = [name for name in self._pieces.pop(piece, ()) if name not in rows]
        for name in rows:
            if gone and name not in self._slots:
                self._slots[name] = self._slots.pop(gone.pop())
        kept = {name for name, row in rows.items() if self._written(name, partial(pack_piece, row=row)) is not None}
        for name in gone:
            self.erase_piece(name)
        if kept:
            self._pieces[piece] = kept
        return len(kept) == len(rows)

    def erase_piece(self, name: PieceName) -> None:
        self._emptied(name)

    # ---- Slots -------------------------------------------------------------------------------------------------------

    def _written(self, name: Name | PieceName, pack: Pack) -> int | None:
        """The slot that was written; None where there is no room."""
        slot = self._slots.get(name)
        if slot is None:
            slot = self._file.take() if self.bounds.has(name[0], _sort(name), self._file.free) else None
            if slot is None:
                return None
            self._put(name, slot)
        self._file.write(slot, pack)
        return slot

    def _emptied(self, name: Name | PieceName) -> bool:
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._file.empty(slot)
            self.bounds.takes(name[0], _sort(name), -1)
        return slot is not None

    def _put(self, name: Name | PieceName, slot: int) -> None:
        self._slots[name] = slot
        self.bounds.takes(name[0], _sort(name))


def _sort(name: Name | PieceName) -> Sort:
    return Sort.PROCESS if len(name) == _NAME_PARTS else Sort.PIECE


def _name(process: Process, card: int | None) -> Name:
    return process.key, process.pid, process.start, NO_CARD if card is None else card
