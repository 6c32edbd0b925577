"""A journal in memory that keeps what the file would: bytes, from which a ledger can be restored."""

from __future__ import annotations

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.budget import CardSpec, Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.pieces import Piece
from partage_isolation.names import BudgetKey, own_budget
from partage_isolation.store.rows import (
    NO_CARD,
    PLACE_BYTES,
    PieceRow,
    Row,
    grouped,
    pack_piece,
    pack_row,
    pieces_of,
    read_row,
    rows_of,
)
from partage_plugins.api.names import CardId, ContainerKey

KEY = ContainerKey("0" * 31 + "1")
OTHER = ContainerKey("0" * 31 + "2")
CARD = CardId("GPU-00000000-0000-0000-0000-000000000000")
MIB = 1 << 20


class Kept:
    def __init__(self, room: int = 10_000) -> None:
        self.rows: dict[tuple[str, int, int, int], bytes] = {}
        self.room = room
        self.pieces: dict[Piece, tuple[bytes, ...]] = {}

    def keep(self, process: Process, card: int | None = None) -> bool:
        name = (process.key, process.pid, process.start, NO_CARD if card is None else card)
        if name not in self.rows and len(self.rows) >= self.room:
            return False
        self.rows[name] = pack_row(1, process, card)
        return True

    def keep_piece(self, key: BudgetKey, piece: Piece) -> bool:
        rows = tuple(pack_piece(1, row) for row in rows_of(key, piece))
        self.pieces.pop(piece, None)
        if len(self.pieces) + len(self.rows) + len(rows) > self.room:
            return False
        if rows:
            self.pieces[piece] = rows
        return True

    def drop(self, process: Process, card: int | None = None) -> None:
        who = (process.key, process.pid, process.start)
        for name in [name for name in self.rows if name[:3] == who and card in (None, name[3])]:
            del self.rows[name]

    def read(self) -> tuple[Row, ...]:
        found = [read_row((place, bytes(PLACE_BYTES)))[2] for place in self.rows.values()]
        return tuple(row for row in found if isinstance(row, Row))

    def read_pieces(self) -> list[PieceRow]:
        found = [read_row((place, bytes(PLACE_BYTES)))[2] for places in self.pieces.values() for place in places]
        return [row for row in found if isinstance(row, PieceRow)]


def book(limit: int, card: CardId = CARD, *, lowered: int | None = None) -> CardSpec:
    return CardSpec(id=card, memory=limit, share=100, limit=1000, lowered=lowered)


def ledger_of(
    limit: int,
    kept: Kept | None = None,
    *,
    context: int | None = None,
    in_limit: bool = True,
    budget: BudgetKey | None = None,
) -> Ledger:
    """A ledger with one container that has one card; with `budget`, two containers share it."""
    ledger = Ledger(kept or Kept(), context_in_limit=in_limit, context_size=lambda _: context)
    for key in (KEY, OTHER) if budget else (KEY,):
        ledger.put(key, (book(limit),), budget)
    return ledger


def restarted(kept: Kept, limit: int, *, context: int | None = None, budget: BudgetKey | None = None) -> Ledger:
    """A new broker over what the last one kept."""
    ledger = ledger_of(limit, kept, context=context, budget=budget)
    for own, cards in grouped(kept.read()):
        accounts = {number: row.account() for number, row in cards.items()}
        assert ledger.lives.restore(
            Process(own.key, own.pid, own.start, own.token, own.state, accounts, since=own.since)
        )
    pieces, kept.pieces = list(pieces_of(kept.read_pieces())), {}
    for piece, _ in pieces:
        ledger.containers[KEY].pieces.restore(piece)
        kept.keep_piece(budget or own_budget(KEY), piece)
    return ledger


def process_of(ledger: Ledger, pid: int = 10) -> Process:
    process = ledger.lives.begin(KEY, (pid, 1), pid.to_bytes(16, "big"))
    assert process is not None
    return process


def charged(ledger: Ledger) -> int:
    return ledger.containers[KEY].charged(0)


def sample(ledger: Ledger, shown: dict[int, int], exact: dict[tuple[int, int], int] | None = None) -> tuple[int, ...]:
    """A sample during which nothing happens."""
    return rules.apply(ledger, rules.begin(ledger, CARD, 10), rules.Shown(shown, dict.fromkeys(shown, 1), exact or {}))
