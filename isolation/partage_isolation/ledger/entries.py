"""The single path for changes to the ledger, and the interface to what stores them. Pure."""

from __future__ import annotations

from typing import Final, Protocol

from partage_isolation.ledger.budget import Budget, Process
from partage_isolation.ledger.pieces import Piece
from partage_isolation.names import BudgetKey
from partage_plugins.api.names import ContainerKey


class Journal(Protocol):
    """Stores what must survive the broker."""

    def keep(self, process: Process, card: int | None = None) -> bool:
        """Store the process, or its account on one card; False where there is no room for another row."""
        ...

    def keep_piece(self, key: BudgetKey, piece: Piece) -> bool:
        """Store shared memory; False where there is no room for all of it."""
        ...

    def drop(self, process: Process, card: int | None = None) -> None:
        """Delete the process, or its account on one card."""
        ...


LOOKS: Final = 16
"""Number of accounts whose inspection takes as long as writing a row."""


class Entries:
    def __init__(self, keeper: Journal) -> None:
        self.containers: dict[ContainerKey, Budget] = {}
        """The budget of each container."""
        self.work = 0
        """Rows written or dropped, plus inspected accounts converted to rows: the cost of a packet."""
        self._keeper = keeper

    def looked_at(self, processes: int) -> None:
        self.work += processes // LOOKS

    def of(self, process: Process) -> Budget:
        return self.containers[process.key]

    def has(self, process: Process) -> bool:
        """False where its container was forgotten meanwhile."""
        budget = self.containers.get(process.key)
        return budget is not None and budget.processes.get(process.id) is process

    # ---- Processes ---------------------------------------------------------------------------------------------------

    def add(self, budget: Budget, process: Process) -> bool:
        """Add a process; False where there is no room to store it."""
        self.work += 1
        process.since = budget.pieces.moments.next
        if not self._keeper.keep(process):
            return False
        budget.enter(process)
        return True

    def changed(self, process: Process) -> None:
        self.work += 1
        self._keeper.keep(process)

    def remove(self, budget: Budget, process: Process) -> None:
        self.work += 1 + len(process.accounts)
        budget.leave(process)
        self._keeper.drop(process)

    # ---- Accounts ----------------------------------------------------------------------------------------------------

    def note(self, process: Process, card: int) -> bool:
        """Store its changed account on a card; False where there is no room."""
        self.work += 1
        self.of(process).count(process, card)
        return self._keeper.keep(process, card)

    def strike(self, budget: Budget, process: Process, card: int) -> None:
        self.work += 1
        del process.accounts[card]
        budget.count(process, card)
        self._keeper.drop(process, card)

    def piece(self, budget: Budget, piece: Piece) -> bool:
        """Store changed shared memory; False where there is no room for all of it."""
        self.work += max(1, len(piece.names)) + len(piece.holders)
        return self._keeper.keep_piece(budget.key, piece)
