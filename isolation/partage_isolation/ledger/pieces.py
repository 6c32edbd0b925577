"""Memory that several processes of a container hold: who made it, who has it open, and what is charged for it.

Pure. While its maker holds a piece, its bytes are of what was lent to the maker, and opening it costs nothing. What the
maker gives back while others have it open is *left*: charged to the container, not to a process, until the last of them
has let go. So every byte is charged once, from when it was taken until it is free.

Names are hashes of what programs hand each other. They count inside one container only: a name
that was never exported there is charged there, as a piece of its own, to the process that opens it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

ProcessId = tuple[int, int]
"""Pid, and when it began: a pid alone is used again."""
Hold = tuple[ProcessId, int]
"""A process, and the name by which it opened the piece."""

MOST_NAMES: Final = 4096
"""Of one container: names given out, and names opened, each by each process."""
MOST_LEFT: Final = 1 << 46
"""Of one piece; more is nonsense, and the sum must fit into a packet."""


class Shared(NamedTuple):
    """What a process says of memory that several can hold."""

    name: int = 0
    number: int = 0
    size: int = 0
    freed: int = 0


@dataclass(slots=True, eq=False)
class Piece:
    """Amounts only grow while it is there, so that whatever is said of it may be said twice."""

    card: int
    maker: ProcessId | None = None
    """Also after it has let go; None: no process here made it."""
    number: int = 0
    """As its maker counts."""
    is_made: bool = False
    """Its maker still holds some of it."""
    is_anybodys: bool = False
    """Openers are not known: once its maker lets go, all who live then may have it."""
    until: int = 0
    """The moment of that, as it was last; 0: it was not yet."""
    is_left: bool = False
    """Somebody who lived then is there still."""
    size: int = 0
    """All that its maker ever had of it."""
    given: int = 0
    """Of that, given back."""
    opened: int = 0
    """The most that anybody said it is who opened it."""
    left: int = 0
    """Charged to the container."""
    names: set[int] = field(default_factory=set[int])
    holders: set[Hold] = field(default_factory=set[Hold])

    @property
    def is_held(self) -> bool:
        """Others than its maker have it, or could."""
        return self.is_left or bool(self.holders)

    @property
    def longest(self) -> int:
        """The larger claim is believed."""
        return max(self.size, self.opened)


_LAST: Final = (1 << 32) - 1
"""From then on who comes is taken for one who was there before."""
_NEVER: Final = _LAST + 1
_Queue = OrderedDict[Piece, None]


class Moments:
    """What all who lived at some moment may have: the moment is kept with a piece, and no list of holders.

    Moments are numbers that only grow while a budget lives. A process has that at which it came, a piece that at which
    its maker last gave some of it back. Who came no later than that, and is not its maker, may have it until it is
    gone.
    """

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
        return min(_LAST, self._now + (self._left_at == self._now))

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


class Pieces:
    def __init__(self) -> None:
        self.left: dict[int, int] = {}
        """By card."""
        self.moments = Moments()
        self._named: dict[int, Piece] = {}
        self._made: dict[ProcessId, dict[tuple[int, int], Piece]] = {}
        """By maker: card and number."""
        self._held: dict[ProcessId, dict[int, Piece]] = {}
        """By holder: name."""
        self._holds = 0

    @property
    def is_full(self) -> bool:
        return len(self._named) + self._holds >= MOST_NAMES

    def made(self, maker: ProcessId, card: int, number: int) -> Piece | None:
        """What its maker calls so."""
        return self._made.get(maker, {}).get((card, number))

    def find(self, who: ProcessId, name: int) -> Piece | None:
        """What a process has open by that name, or would open by it."""
        return self._held.get(who, {}).get(name) or self._named.get(name)

    def holds(self, who: ProcessId, name: int) -> bool:
        return name in self._held.get(who, {})

    # ---- What processes do -------------------------------------------------------------------------------------------

    def export(  # noqa: PLR0913  what it is has its parts
        self, maker: ProcessId, card: int, number: int, *, name: int, size: int, anybodys: bool
    ) -> Piece:
        """Others can open it from now on by that name (0: by those that it has); so long is all that was ever of it."""
        piece = self.made(maker, card, number)
        if piece is None:
            piece = Piece(card, maker, number, is_made=True)
            self._made.setdefault(maker, {})[card, number] = piece
        piece.size = max(piece.size, size)
        piece.is_anybodys |= anybodys
        if name:
            piece.names.add(name)
            self._named[name] = piece
        return piece

    def take_back(self, piece: Piece, name: int, *, is_new: bool) -> None:
        """It was not exported by that name after all, or not at all."""
        piece.names.discard(name)
        if self._named.get(name) is piece:
            del self._named[name]
        if is_new:
            self._is_made_no_more(piece)

    def open(self, who: ProcessId, card: int, name: int, size: int) -> Piece | None:
        """It has it open, or is about to; None: no process made it, and its size is not known.

        What no process made counts for that card.
        """
        piece = self.find(who, name)
        if piece is None:
            if not size:
                return None
            piece = self._named[name] = Piece(card, names={name})
        self._leave(piece, max(0, size - piece.longest))
        piece.opened = max(piece.opened, size)
        self._hold(who, name, piece)
        return piece

    def close(self, who: ProcessId, name: int) -> Piece | None:
        piece = self._held.get(who, {}).pop(name, None)
        if piece is not None:
            self._holds -= 1
            if not self._held[who]:
                del self._held[who]
            piece.holders.discard((who, name))
            self._is_held_no_more(piece)
        return piece

    def give(self, piece: Piece, given: int) -> int:
        """Its maker has given back so much of it in all; how much of that is left to others now."""
        more = min(given, piece.size) - piece.given
        if more <= 0:
            return 0
        piece.given += more
        if piece.is_anybodys:
            self.moments.leave(piece)
        left = self._leave(piece, more) if piece.is_held else 0
        if piece.given == piece.size:
            self._is_made_no_more(piece)
        return left

    def gone(self, who: ProcessId, card: int | None = None) -> list[Piece]:
        """A process has nothing any more, on that card or on any; the pieces that this changes."""
        if card is None:
            self.moments.went(who)
        made = [piece for (on, _), piece in self._made.get(who, {}).items() if card in (None, on)]
        for piece in made:
            self.give(piece, piece.size)
            self._is_made_no_more(piece)
        held = [name for name, each in self._held.get(who, {}).items() if card in (None, each.card)]
        closed = [each for name in held if (each := self.close(who, name)) is not None]
        released = self.moments.released()
        for piece in released:
            self._is_held_no_more(piece)
        return list(dict.fromkeys([*made, *closed, *released]))

    def _hold(self, who: ProcessId, name: int, piece: Piece) -> None:
        self._holds += not self.holds(who, name)
        self._held.setdefault(who, {})[name] = piece
        piece.holders.add((who, name))

    def _leave(self, piece: Piece, more: int) -> int:
        """What is charged to the container by it."""
        more = min(more, MOST_LEFT - piece.left)
        piece.left += more
        self.left[piece.card] = self.left.get(piece.card, 0) + more
        return more

    def _is_held_no_more(self, piece: Piece) -> None:
        if not piece.is_held:
            self._leave(piece, -piece.left)
            piece.opened = 0
            self._forget_if_nobodys(piece)

    def _is_made_no_more(self, piece: Piece) -> None:
        piece.is_made = False
        if piece.maker is not None and (made := self._made.get(piece.maker)):
            made.pop((piece.card, piece.number), None)
            if not made:
                del self._made[piece.maker]
        self._forget_if_nobodys(piece)

    def _forget_if_nobodys(self, piece: Piece) -> None:
        if piece.is_made or piece.is_held:
            return
        for name in piece.names:
            if self._named.get(name) is piece:
                del self._named[name]

    # ---- What an earlier broker knew ---------------------------------------------------------------------------------

    def restore(self, piece: Piece) -> None:
        """In the order of moments, after the processes; one that nobody has is forgotten."""
        if piece.until:
            self.moments.restore(piece)
        for who, name in list(piece.holders):
            self._hold(who, name, piece)
        if piece.is_made and piece.maker is not None:
            self._made.setdefault(piece.maker, {})[piece.card, piece.number] = piece
        if not piece.is_held:
            piece.left = 0  # the broker was killed between its last holder's end and the last row
        if piece.is_held or piece.is_made:
            self._named |= dict.fromkeys(piece.names, piece)
        self.left[piece.card] = self.left.get(piece.card, 0) + piece.left
