"""Keeps what the broker must not forget in the file of rows: each row of a process or of a piece has its slot there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from partage_isolation.broker.containers import Process
from partage_isolation.broker.piece_rows import PieceRow, rows_of
from partage_isolation.broker.pieces import Piece
from partage_isolation.broker.rows import Row, pack_piece, pack_row
from partage_isolation.broker.slots import Pack, Slots
from partage_isolation.broker.wire import NO_CARD
from partage_plugins.vocabulary.names import ContainerKey

ROWS: Final = 32768

Name = tuple[ContainerKey, int, int, int]
"""Of a row: container, pid, start, card."""
PieceName = tuple[ContainerKey, int, int, int, int, int]
"""Of one that says what a process holds of a piece: also the name, and whether it made it."""


class RowsFile:
    """A `keeper.Keeper`."""

    def __init__(self, path: Path, *, boot: str, rows: int = ROWS) -> None:
        """Opens it, or makes a new one; raises `NoRows`."""
        self._file = Slots(path, boot=boot, rows=rows)
        self._slots: dict[Name | PieceName, int] = {}
        self._pieces: dict[Piece, set[PieceName]] = {}
        self._cards: dict[tuple[ContainerKey, int, int], set[int]] = {}
        self._found: list[Row] = []
        self._found_pieces: list[PieceRow] = []
        for slot, row in self._file.found.items():
            self._find(slot, row)
        self._file.found.clear()

    def close(self) -> None:
        """What was written stays."""
        self._file.close()

    @property
    def lost(self) -> str:
        """What was wrong with what was found; empty: nothing."""
        return self._file.lost

    @property
    def free(self) -> int:
        """How many more rows there is room for."""
        return self._file.free

    # ---- What an earlier broker left ---------------------------------------------------------------------------------

    def found(self) -> tuple[Row, ...]:
        """Of processes; once."""
        found, self._found = tuple(self._found), []
        return found

    def found_pieces(self) -> tuple[PieceRow, ...]:
        """Of pieces; once."""
        found, self._found_pieces = tuple(self._found_pieces), []
        return found

    def restored(self, key: ContainerKey, piece: Piece) -> None:
        """It is one of those that were found."""
        self._pieces[piece] = {row.place for row in rows_of(key, piece)}

    def _find(self, slot: int, row: Row | PieceRow) -> None:
        if isinstance(row, PieceRow):
            self._slots[row.place] = slot
            self._found_pieces.append(row)
        else:
            name = (row.key, row.pid, row.start, row.card)
            self._slots[name] = slot
            self._note(name)
            self._found.append(row)

    # ---- Rows of processes -------------------------------------------------------------------------------------------

    def keep(self, process: Process, card: int | None = None) -> bool:
        """Writes it down; False where there is no room."""
        name = _name(process, card)
        is_new = name not in self._slots
        slot = self._written(name, partial(pack_row, process=process, card=card))
        if is_new and slot is not None:
            self._note(name)
        return slot is not None

    def drop(self, process: Process, card: int | None = None) -> None:
        """Forgets it; the process itself last, since the others mean nothing without."""
        who = _name(process, None)[:3]
        known = self._cards.get(who, set())
        for each in sorted(known) if card is None else [card]:
            self.erase((*who, each))

    def erase(self, name: Name) -> None:
        """Forgets one row."""
        if not self._emptied(name):
            return
        cards = self._cards[name[:3]]
        cards.discard(name[3])
        if not cards:
            del self._cards[name[:3]]

    def _note(self, name: Name) -> None:
        self._cards.setdefault(name[:3], set()).add(name[3])

    # ---- Rows of pieces ----------------------------------------------------------------------------------------------

    def keep_piece(self, key: ContainerKey, piece: Piece) -> bool:
        """Writes down all that it is now; False where there is no room for all of it. What is no more goes last."""
        rows = {row.place: row for row in rows_of(key, piece)}
        before = self._pieces.pop(piece, set())
        slots = [self._written(name, partial(pack_piece, row=row)) for name, row in rows.items()]
        for name in before - rows.keys():
            self.erase_piece(name)
        if rows:
            self._pieces[piece] = set(rows)
        return None not in slots

    def erase_piece(self, name: PieceName) -> None:
        """Forgets one row of a piece."""
        self._emptied(name)

    # ---- Slots -------------------------------------------------------------------------------------------------------

    def _written(self, name: Name | PieceName, pack: Pack) -> int | None:
        """Where it lies now; None where there is no room."""
        slot = self._slots.get(name)
        if slot is None:
            slot = self._file.take()
            if slot is None:
                return None
            self._slots[name] = slot
        self._file.write(slot, pack)
        return slot

    def _emptied(self, name: Name | PieceName) -> bool:
        """Whether there was such a row."""
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._file.empty(slot)
        return slot is not None


def _name(process: Process, card: int | None) -> Name:
    return process.key, process.pid, process.start, NO_CARD if card is None else card
