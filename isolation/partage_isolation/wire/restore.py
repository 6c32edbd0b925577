"""Restores an earlier broker's accounting: rows of live processes are kept until these reconnect.

The row of a dead process is charged until a sample of the card no longer shows it, as for any process that dies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.names import BudgetKey
from partage_isolation.store.rows import NOBODY, PieceRow, Row, grouped, pieces_of
from partage_isolation.store.rows_file import RowsFile
from partage_isolation.wire.engines import known_again
from partage_isolation.wire.watch import Watch


def restore(rows: RowsFile, ledger: Ledger, watch: Watch) -> Iterator[str]:
    """Restore all rows; yield a message for each unusable row, which is dropped."""
    found = rows.found()
    known = set[tuple[str, int, int]]()
    dead = list[Process]()
    for own, cards in grouped(found):
        process = _process(own, cards)
        known.add((own.key, own.pid, own.start))
        if not ledger.lives.restore(process):
            rows.drop(process)
            yield f"a row of process {own.pid} is of container {own.key}, which is not known; it is dropped"
            continue
        peer = None if process.state is State.DEAD else known_again(process.pid, process.start)
        if peer is None:
            dead.append(process)
        else:
            watch.watch(process, peer)
    _restore_pieces(rows, ledger)
    for process in dead:
        watch.died(process)
    for row in found:
        if (row.key, row.pid, row.start) not in known:
            rows.erase((row.key, row.pid, row.start, row.card))


def _restore_pieces(rows: RowsFile, ledger: Ledger) -> None:
    """Restore shared memory before deaths are processed, which release it as usual; drop what no process owns."""
    of = dict[BudgetKey, list[PieceRow]]()
    for row in rows.found_pieces():
        budget = ledger.budgets.get(row.key)
        if budget is not None and (row.who == NOBODY or row.who in budget.processes):
            of.setdefault(row.key, []).append(row)
        else:
            rows.erase_piece(row.place)
    for key, of_one in of.items():
        for piece, places in pieces_of(of_one):
            ledger.budgets[key].pieces.restore(piece)
            rows.restored(key, piece, places)


def _process(own: Row, cards: Mapping[int, Row]) -> Process:
    accounts = {number: row.account() for number, row in cards.items()}
    return Process(own.key, own.pid, own.start, own.token, own.state, accounts, since=own.since)
