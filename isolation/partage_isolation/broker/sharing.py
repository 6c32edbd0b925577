"""Memory that several processes hold, in the books: what they say of it, and what is noted. Pure.

What a piece is, and what is charged for it, is decided by `pieces`.
"""

from __future__ import annotations

from partage_isolation.broker.accounts import MOST_BYTES
from partage_isolation.broker.containers import Container, Process
from partage_isolation.broker.entries import Entries
from partage_isolation.broker.wire import Shared


class Sharing:
    """In all containers."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def exported(self, process: Process, card: int, said: Shared, *, anybodys: bool = False) -> bool:
        """Others can hold memory of the process from now on; False where there is no room to note it."""
        pieces = self._entries.of(process).pieces
        known = pieces.made(process.id, card, said.number)
        is_new = known is None or bool(said.name and said.name not in known.names)
        if is_new and pieces.is_full:
            return False
        size = min(said.size, MOST_BYTES)
        piece = pieces.export(process.id, card, said.number, name=said.name, size=size, anybodys=anybodys)
        return self._entries.piece(process.key, piece)

    def left(self, process: Process, card: int, said: Shared) -> int:
        """The process has given back `said.size` of the piece in all; what is lent to it then.

        What others have open is charged to the container first, so that nothing is charged to nobody. The process is
        rid of no more than that, whatever it says.
        """
        container = self._entries.of(process)
        account = process.on(card)
        piece = container.pieces.made(process.id, card, said.number)
        if piece is not None:
            left = container.pieces.give(piece, said.size, container.living())
            self._entries.piece(process.key, piece)
            if left:
                account.leave(min(said.freed, left))
                self._entries.note(process, card)
        return account.lent

    def opened(self, process: Process, card: int, said: Shared) -> int | None:
        """The process has memory of another open, or is about to; how much that is: 0 where nobody made it.

        None: what nobody made does not fit, or there is no room to note it.
        """
        container = self._entries.of(process)
        pieces, size = container.pieces, min(said.size, MOST_BYTES)
        known = pieces.find(process.id, said.name)
        if not pieces.holds(process.id, said.name) and pieces.is_full:
            return None
        if size > (known.longest if known else 0) and size > container.room(card):
            return None
        piece = pieces.open(process.id, card, said.name, size)
        if piece is None:
            return 0
        if self._entries.piece(process.key, piece):
            return piece.longest
        self.closed(process, said)
        return None

    def closed(self, process: Process, said: Shared) -> None:
        """It has let go of it."""
        piece = self._entries.of(process).pieces.close(process.id, said.name)
        if piece is not None:
            self._entries.piece(process.key, piece)

    def gone(self, container: Container, process: Process, card: int | None = None) -> None:
        """The process has nothing any more, on that card or on any."""
        for piece in container.pieces.gone(process.id, container.living(), card):
            self._entries.piece(container.key, piece)
