"""What the ledger asks of whoever writes its books down. Pure."""

from __future__ import annotations

from typing import Protocol

from partage_isolation.broker.containers import Process
from partage_isolation.broker.pieces import Piece
from partage_plugins.vocabulary.names import ContainerKey


class Keeper(Protocol):
    """Writes down what must survive the broker."""

    def keep(self, process: Process, card: int | None = None) -> bool:
        """The process, or what it has of one card; False where there is no room for another row."""
        ...

    def keep_piece(self, key: ContainerKey, piece: Piece) -> bool:
        """What several processes hold; False where there is no room for all of it."""
        ...

    def drop(self, process: Process, card: int | None = None) -> None:
        """Nothing of it need be known any more, or nothing of what it had of one card."""
        ...
