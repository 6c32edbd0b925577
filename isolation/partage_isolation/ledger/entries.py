"""The one way by which anything enters the ledger, and what that asks of its keeper. Pure."""

from __future__ import annotations

from typing import Final, Protocol

from partage_isolation.ledger.budget import Budget, Process
from partage_isolation.ledger.pieces import Piece
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import ContainerKey


class Keeper(Protocol):
    """Writes down what must survive the broker."""

    def keep(self, process: Process, card: int | None = None) -> bool:
        """The process, or what it has of one card; False where there is no room for another row."""
        ...

    def keep_piece(self, key: BudgetKey, piece: Piece) -> bool:
        """What several processes hold; False where there is no room for all of it."""
        ...

    def drop(self, process: Process, card: int | None = None) -> None:
        """Nothing of it need be known any more, or nothing of what it had of one card."""
        ...

    def belongs(self, owner: ContainerKey | BudgetKey, namespace: str) -> None:
        """Of which namespace a container or a budget is; of none: it is not known, or there will be nothing of it."""
        ...


LOOKS: Final = 16
"""At so many accounts take as long as to write a row."""


class Entries:
    def __init__(self, keeper: Keeper) -> None:
        self.containers: dict[ContainerKey, Budget] = {}
        """Which budget each uses."""
        self.work = 0
        """Rows that were written or dropped, and what was looked at, as so many rows: what a packet costs."""
        self._keeper = keeper

    def looked_at(self, processes: int) -> None:
        self.work += processes // LOOKS

    def belong(self, budget: Budget, container: ContainerKey, namespace: str) -> None:
        """The budget and the container: both have rows."""
        self._keeper.belongs(container, namespace)
        if namespace or not budget.containers:
            self._keeper.belongs(budget.key, namespace)

    def of(self, process: Process) -> Budget:
        return self.containers[process.key]

    def has(self, process: Process) -> bool:
        """False where its container was forgotten meanwhile."""
        budget = self.containers.get(process.key)
        return budget is not None and budget.processes.get(process.id) is process

    # ---- Processes ---------------------------------------------------------------------------------------------------

    def add(self, budget: Budget, process: Process) -> bool:
        """A new one; False where there is no room to note it."""
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

    # ---- What they have ----------------------------------------------------------------------------------------------

    def note(self, process: Process, card: int) -> bool:
        """What it has of that card changed; False where there is no room to note it."""
        self.work += 1
        self.of(process).count(process, card)
        return self._keeper.keep(process, card)

    def strike(self, budget: Budget, process: Process, card: int) -> None:
        self.work += 1
        del process.accounts[card]
        budget.count(process, card)
        self._keeper.drop(process, card)

    def piece(self, budget: Budget, piece: Piece) -> bool:
        """What several hold changed; False where there is no room to note all of it."""
        self.work += max(1, len(piece.names)) + len(piece.holders)
        return self._keeper.keep_piece(budget.key, piece)
