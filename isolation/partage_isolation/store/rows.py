"""The encoding of rows. Shared memory has a row for each name by which one process holds it, as its maker or not.

Memory that all processes of an epoch may have open has one row for each name, with that epoch and no process.

Pure. Every row has all data of the allocation, so that it is complete while any process holds it. Where a broker was
killed between two rows of one allocation, the higher amounts count.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from partage_isolation.ledger.account import Account
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.pieces import Piece, ProcessId
from partage_isolation.names import BudgetKey
from partage_plugins.api.names import ContainerKey

MADE: Final = 64
HELD: Final = 65
"""Kinds of rows beside the states of processes."""
BODY: Final = struct.Struct("<4xQ16sQQIHBBQQIIQQQQ")
"""The fields after the checksum.

Version, key, name, number, pid, card, kind, whether openers are unknown, start, maker's start and pid, epoch, and
amounts.
"""
NOBODY: Final[ProcessId] = 0, 0
"""Holder of memory that all processes of an epoch may have open."""
PieceName = tuple[BudgetKey, int, int, int, int, int]
"""Key of a row of shared memory; its last parts are the name and whether the process made it."""


@dataclass(frozen=True)
class PieceRow:
    key: BudgetKey
    pid: int
    start: int
    card: int
    name: int
    kind: int
    number: int
    maker: ProcessId | None
    is_anybodys: bool
    until: int
    size: int
    given: int
    opened: int
    left: int

    @property
    def place(self) -> PieceName:
        """The row's unique key."""
        return self.key, self.pid, self.start, self.card, self.name, self.kind

    @property
    def who(self) -> ProcessId:
        return self.pid, self.start


def rows_of(key: BudgetKey, piece: Piece) -> Iterator[PieceRow]:
    if piece.is_made and piece.maker is not None:
        for name in piece.names or {0}:
            yield _piece_row(key, piece, piece.maker, name, MADE)
    elif piece.is_left:
        for name in piece.names or {0}:
            yield _piece_row(key, piece, NOBODY, name, HELD)
    for who, name in piece.holders:
        yield _piece_row(key, piece, who, name, HELD)


def _piece_row(key: BudgetKey, piece: Piece, who: ProcessId, name: int, kind: int) -> PieceRow:
    return PieceRow(
        key,
        *who,
        piece.card,
        name,
        kind,
        piece.number,
        piece.maker,
        piece.is_anybodys,
        piece.until,
        piece.size,
        piece.given,
        piece.opened,
        piece.left,
    )


def pack(version: int, row: PieceRow) -> bytes:
    pid, start = row.maker or (0, 0)
    return BODY.pack(
        version,
        bytes.fromhex(row.key),
        row.name,
        row.number,
        row.pid,
        row.card,
        row.kind,
        row.is_anybodys,
        row.start,
        start,
        pid,
        row.until,
        row.size,
        row.given,
        row.opened,
        row.left,
    )


def unpack(body: bytes) -> PieceRow:
    _, key, name, number, pid, card, kind, whose, start, made, maker, until, *amounts = BODY.unpack_from(body)
    by = (maker, made) if maker else None
    return PieceRow(BudgetKey(key.hex()), pid, start, card, name, kind, number, by, bool(whose), until, *amounts)


def pieces_of(rows: Iterable[PieceRow]) -> Iterator[tuple[Piece, set[PieceName]]]:
    """Rebuild allocations, each with its rows' keys, in order of epochs."""
    found: dict[tuple[object, ...], tuple[Piece, set[PieceName]]] = {}
    for row in rows:
        which = (row.card, row.maker, row.number if row.maker else row.name)
        piece, places = found.setdefault(which, (Piece(row.card, row.maker, row.number), set()))
        places.add(row.place)
        _take_in(piece, row)
    yield from sorted(found.values(), key=lambda one: one[0].until)


def _take_in(piece: Piece, row: PieceRow) -> None:
    piece.is_made |= row.kind == MADE
    piece.is_anybodys |= row.is_anybodys
    piece.until = max(piece.until, row.until)
    piece.size, piece.given = max(piece.size, row.size), max(piece.given, row.given)
    piece.opened, piece.left = max(piece.opened, row.opened), max(piece.left, row.left)
    piece.names |= {row.name} - {0}
    if row.kind == HELD and row.who != NOBODY:
        piece.holders.add((row.who, row.name))


NO_CARD: Final = 0xFFFF
"""In place of a card: the row of the process itself."""
PLACE_BYTES: Final = 128
"""Size of one version of a row; a row has two."""
_CHECK: Final = struct.Struct("<I")
_ROW: Final = struct.Struct("<4xQ16s16sIHBBQ7Q")
"""After the checksum: number, key, token, pid, card, state, whether a context was made, start, and amounts."""
_EMPTY: Final = 0

if _CHECK.size + max(_ROW.size, BODY.size) > PLACE_BYTES:
    raise AssertionError("a row does not fit into its place")


@dataclass(frozen=True)
class Row:
    """A stored process, or its account on one card."""

    key: ContainerKey
    token: bytes
    pid: int
    start: int
    card: int
    """NO_CARD: the process itself."""
    state: State
    is_made: bool
    lent: int
    unproved: int
    overhead: int
    reserved: int
    used: int
    since: int
    """For a process: the epoch at which it came."""
    hidden: int

    def account(self) -> Account:
        return Account(
            self.lent,
            self.unproved,
            self.overhead,
            self.reserved,
            used=self.used,
            hidden=self.hidden,
            is_made=self.is_made,
        )


def pack_row(number: int, process: Process, card: int | None, *, place_bytes: int = PLACE_BYTES) -> bytes:
    """Encode the current state."""
    account = Account() if card is None else process.accounts[card]
    body = _ROW.pack(
        number,
        bytes.fromhex(process.key),
        process.token,
        process.pid,
        NO_CARD if card is None else card,
        process.state,
        account.is_made,
        process.start,
        account.lent,
        account.unproved,
        account.overhead,
        account.reserved,
        account.used,
        process.since if card is None else 0,
        account.hidden,
    )
    return checked(body, place_bytes)


def pack_piece(number: int, row: PieceRow, *, place_bytes: int = PLACE_BYTES) -> bytes:
    """Encode what one process holds of a shared allocation."""
    return checked(pack(number, row), place_bytes)


def pack_empty(number: int, *, place_bytes: int = PLACE_BYTES) -> bytes:
    """Encode a row's end."""
    return checked(_ROW.pack(number, b"", b"", 0, 0, _EMPTY, 0, *[0] * 8), place_bytes)


def checked(body: bytes, place_bytes: int) -> bytes:
    body = body.ljust(place_bytes - _CHECK.size, b"\0")
    return _CHECK.pack(zlib.crc32(body)) + body


class Damaged(Exception):
    """Neither version of a row is intact."""


def read_row(places: tuple[bytes, bytes]) -> tuple[int, int, Row | PieceRow | None]:
    """Return the number, the version in force, and the row if there is one. Raises `Damaged`."""
    numbers = [_number(place) for place in places]
    latest = max(range(2), key=lambda index: numbers[index])
    if numbers[latest] < 0:
        raise Damaged
    return numbers[latest], latest, _row(places[latest])


def _number(place: bytes) -> int:
    """The number of an intact version; 0 if it was never written, -1 if it is damaged."""
    (check,) = _CHECK.unpack_from(place)
    if not check and not any(place):
        return 0
    if check != zlib.crc32(place[_CHECK.size :]):
        return -1
    number: int = _ROW.unpack_from(place, _CHECK.size)[0]
    return number


def _row(place: bytes) -> Row | PieceRow | None:
    _, key, token, pid, card, state, made, start, *amounts = _ROW.unpack_from(place, _CHECK.size)
    if state == _EMPTY:
        return None
    if state in (MADE, HELD):
        return unpack(place[_CHECK.size :])
    try:
        return Row(ContainerKey(key.hex()), token, pid, start, card, State(state), bool(made), *amounts)
    except ValueError:  # a state of a later release
        raise Damaged from None


def grouped(rows: Iterable[Row]) -> Iterator[tuple[Row, dict[int, Row]]]:
    """Each process's row with its rows by card, in order of arrival; rows without a process row are left out."""
    by_process: dict[tuple[ContainerKey, int, int], dict[int, Row]] = {}
    for row in rows:
        by_process.setdefault((row.key, row.pid, row.start), {})[row.card] = row
    whole = [(cards.pop(NO_CARD), cards) for cards in by_process.values() if NO_CARD in cards]
    yield from sorted(whole, key=lambda one: one[0].since)
