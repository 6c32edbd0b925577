"""What all who lived at some moment may have: the moment is kept with a piece, and no list of holders. Pure.

Moments are numbers that only grow while a budget lives. A process has that at which it came, a piece that at which its
maker last gave some of it back. Who came no later than that, and is not its maker, may have it until it is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from partage_isolation.ledger.pieces import Piece, ProcessId

LAST: Final = (1 << 32) - 1
"""From then on who comes is taken for one who was there before."""
_NEVER: Final = LAST + 1
_Queue = OrderedDict["Piece", None]


class Moments:
    def __init__(self) -> None:
        self._now, self._left_at = 1, 0
        self._since: dict[ProcessId, int] = {}
        """When they came, in that order."""
        self._left: _Queue = OrderedDict()
        """What somebody may have, in the order of moments."""
        self._of: dict[ProcessId | None, _Queue] = {}
        """The same, by maker."""

    @property
    def next(self) -> int:
        """When the next process comes: after all that was left before."""
        return min(LAST, self._now + (self._left_at == self._now))

    # ---- Processes ---------------------------------------------------------------------------------------------------

    def came(self, who: ProcessId, since: int) -> None:
        """In the order of moments."""
        self._since.pop(who, None)
        self._since[who] = since
        self._now = max(self._now, since)

    def went(self, who: ProcessId) -> None:
        self._since.pop(who, None)

    # ---- Pieces ------------------------------------------------------------------------------------------------------

    def leave(self, piece: Piece) -> None:
        """All who are there now may have it."""
        piece.until = self._left_at = self._now
        self._let_go(piece)
        self._take(piece)

    def restore(self, piece: Piece) -> None:
        """In the order of moments, and after the processes."""
        self._left_at = max(self._left_at, piece.until)
        self._now = max(self._now, piece.until)
        self._take(piece)

    def released(self) -> list[Piece]:
        """What nobody can have any more, since those are gone who could."""
        gone = list(self._until(self._left, self._oldest_but(None)))
        for maker in islice(self._since, 1):
            gone += self._until(self._of.get(maker, OrderedDict()), self._oldest_but(maker))
        for piece in dict.fromkeys(gone):
            self._let_go(piece)
        return list(dict.fromkeys(gone))

    def _until(self, queue: _Queue, moment: int) -> Iterator[Piece]:
        for piece in queue:
            if piece.until >= moment:
                return
            yield piece

    def _oldest_but(self, maker: ProcessId | None) -> int:
        """When the first of the others came."""
        return next((since for who, since in islice(self._since.items(), 2) if who != maker), _NEVER)

    def _take(self, piece: Piece) -> None:
        piece.is_left = self._oldest_but(piece.maker) <= piece.until
        if piece.is_left:
            self._left[piece] = None
            self._of.setdefault(piece.maker, OrderedDict())[piece] = None

    def _let_go(self, piece: Piece) -> None:
        if not piece.is_left:
            return
        piece.is_left = False
        del self._left[piece]
        of_maker = self._of[piece.maker]
        del of_maker[piece]
        if not of_maker:
            del self._of[piece.maker]
