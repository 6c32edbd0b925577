"""Pieces as they lie in the file of rows: a row for each name by which one process holds one, as its maker or not.

Pure. Every row has all that must be known of the piece, so that it is whole while anybody holds it. Where a broker was
killed between two rows of one piece, the higher amounts count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from partage_isolation.broker.pieces import Piece, ProcessId
from partage_plugins.vocabulary.names import ContainerKey

MADE: Final = 64
HELD: Final = 65
"""Beside the states of processes."""
BODY: Final = struct.Struct("<4xQ16sQQIHBBQQIIQQQQ")
"""After the checksum: version, key, name, number, pid, card, kind, whose, start, maker's start and pid, and amounts."""


@dataclass(frozen=True)
class PieceRow:
    """What one process holds."""

    key: ContainerKey
    pid: int
    start: int
    card: int
    name: int
    kind: int
    number: int
    maker: ProcessId | None
    is_anybodys: bool
    size: int
    given: int
    opened: int
    left: int

    @property
    def place(self) -> tuple[ContainerKey, int, int, int, int, int]:
        """What no other row has."""
        return self.key, self.pid, self.start, self.card, self.name, self.kind

    @property
    def who(self) -> ProcessId:
        """The process."""
        return self.pid, self.start


def rows_of(key: ContainerKey, piece: Piece) -> Iterator[PieceRow]:
    """All rows that it has now."""
    if piece.is_made and piece.maker is not None:
        for name in piece.names or {0}:
            yield _row(key, piece, piece.maker, name, MADE)
    for who, name in piece.holders:
        yield _row(key, piece, who, name, HELD)


def _row(key: ContainerKey, piece: Piece, who: ProcessId, name: int, kind: int) -> PieceRow:
    return PieceRow(
        key,
        *who,
        piece.card,
        name,
        kind,
        piece.number,
        piece.maker,
        piece.is_anybodys,
        piece.size,
        piece.given,
        piece.opened,
        piece.left,
    )


def pack(version: int, row: PieceRow) -> bytes:
    """Without its checksum."""
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
        0,
        row.size,
        row.given,
        row.opened,
        row.left,
    )


def unpack(body: bytes) -> PieceRow:
    """What `pack` wrote."""
    _, key, name, number, pid, card, kind, whose, start, made, maker, _, *amounts = BODY.unpack_from(body)
    by = (maker, made) if maker else None
    return PieceRow(ContainerKey(key.hex()), pid, start, card, name, kind, number, by, bool(whose), *amounts)


def pieces_of(rows: Iterable[PieceRow]) -> Iterator[Piece]:
    """The pieces of one container again."""
    found: dict[tuple[object, ...], Piece] = {}
    for row in rows:
        which = (row.card, row.maker, row.number if row.maker else row.name)
        piece = found.setdefault(which, Piece(row.card, row.maker, row.number))
        piece.is_made |= row.kind == MADE
        piece.is_anybodys |= row.is_anybodys
        piece.size, piece.given = max(piece.size, row.size), max(piece.given, row.given)
        piece.opened, piece.left = max(piece.opened, row.opened), max(piece.left, row.left)
        piece.names |= {row.name} - {0}
        if row.kind == HELD:
            piece.holders.add((row.who, row.name))
    yield from found.values()
