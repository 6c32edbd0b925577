"""Shared memory of a container: who made it, who has it open, and how it is charged.

Pure. While its maker holds an allocation, its bytes are part of the maker's quota, and opening it costs nothing. What
the maker gives back while others have it open is *left*: charged to the container, not to a process, until the last of
them closes it. So every byte is charged once, from when it was taken until it is free.

Names are hashes of the handles that programs exchange. They are valid inside one container only: a name that was never
exported there is charged there, as an allocation of its own, to the process that opens it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

ProcessId = tuple[int, int]
"""Pid and start time: a pid alone is reused."""
Hold = tuple[ProcessId, int]
"""A process, and the name by which it opened the allocation."""

MOST_NAMES: Final = 4096
"""Limit for one container: exported names, plus opened names of each process."""
MOST_LEFT: Final = 1 << 46
"""Limit for one allocation: a larger value is invalid, and the sum must fit into a packet."""


class Shared(NamedTuple):
    """A process's report about shared memory."""

    name: int = 0
    number: int = 0
    size: int = 0
    freed: int = 0


@dataclass(slots=True, eq=False)
class Piece:
    """A shared allocation. Amounts only grow while it exists, so that reports are idempotent."""

    card: int
    maker: ProcessId | None = None
    """Kept after it has released it; None: no process of this container made it."""
    number: int = 0
    """The maker's own number for it."""
    is_made: bool = False
    """Its maker still holds some of it."""
    is_anybodys: bool = False
    """Openers are unknown: once its maker releases it, all processes alive then may have it open."""
    until: int = 0
    """Epoch of the last such release; 0 if there was none."""
    is_left: bool = False
    """Some process that was alive then still exists."""
    size: int = 0
    """All that its maker ever had of it."""
    given: int = 0
    """The part that its maker gave back."""
    opened: int = 0
    """The largest size that any opener reported."""
    left: int = 0
    """Charged to the container."""
    names: set[int] = field(default_factory=set[int])
    holders: set[Hold] = field(default_factory=set[Hold])

    @property
    def is_held(self) -> bool:
        """Processes other than its maker have it open, or could."""
        return self.is_left or bool(self.holders)

    @property
    def longest(self) -> int:
        """The larger claim counts."""
        return max(self.size, self.opened)


_LAST: Final = (1 << 32) - 1
"""From this epoch on, new processes count as having existed before."""
_NEVER: Final = _LAST + 1
_Queue = OrderedDict[Piece, None]


class Moments:
    """Tracks which processes may have released memory open, by an epoch for each allocation instead of a holder list.

    Epochs are numbers that only grow while a budget lives. A process has the epoch at which it came, an allocation that
    at which its maker last gave some of it back. A process that came no later than that, other than the maker, may have
    it open until the process is gone.
    """

    def __init__(self) -> None:
        self._now, self._left_at = 1, 0
        self._since: dict[ProcessId, int] = {}
        """Epochs of arrival, in order."""
        self._left: _Queue = OrderedDict()
        """Allocations that some process may have open, in order of epochs."""
        self._of: dict[ProcessId | None, _Queue] = {}
        """The same, by maker."""

    @property
    def next(self) -> int:
        """The epoch of the next arrival: after all that was left before."""
        return min(_LAST, self._now + (self._left_at == self._now))

    # ---- Processes ---------------------------------------------------------------------------------------------------

    def came(self, who: ProcessId, since: int) -> None:
        """Add a process; calls come in order of epochs."""
        self._since.pop(who, None)
        self._since[who] = since
        self._now = max(self._now, since)

    def went(self, who: ProcessId) -> None:
        self._since.pop(who, None)

    # ---- Shared memory -----------------------------------------------------------------------------------------------

    def leave(self, piece: Piece) -> None:
        """All current processes may have it open."""
        piece.until = self._left_at = self._now
        self._let_go(piece)
        self._take(piece)

    def restore(self, piece: Piece) -> None:
        """Restore an allocation; calls come in order of epochs, after the processes."""
        self._left_at = max(self._left_at, piece.until)
        self._now = max(self._now, piece.until)
        self._take(piece)

    def released(self) -> list[Piece]:
        """Allocations that no process can have open any more, since all that could are gone."""
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
        """Epoch of the first other process."""
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
        """By maker, then card and number."""
        self._held: dict[ProcessId, dict[int, Piece]] = {}
        """By holder, then name."""
        self._holds = 0

    @property
    def is_full(self) -> bool:
        return len(self._named) + self._holds >= MOST_NAMES

    def made(self, maker: ProcessId, card: int, number: int) -> Piece | None:
        """The allocation with its maker's number."""
        return self._made.get(maker, {}).get((card, number))

    def find(self, who: ProcessId, name: int) -> Piece | None:
        """What a process has open by that name, or would open by it."""
        return self._held.get(who, {}).get(name) or self._named.get(name)

    def holds(self, who: ProcessId, name: int) -> bool:
        return name in self._held.get(who, {})

    # ---- Operations of processes -------------------------------------------------------------------------------------

    def export(  # noqa: PLR0913  what it is has its parts
        self, maker: ProcessId, card: int, number: int, *, name: int, size: int, anybodys: bool
    ) -> Piece:
        """Make it available by a name, or by its existing names if 0; `size` is all that it ever comprised."""
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
        """Undo the export by that name, or altogether."""
        piece.names.discard(name)
        if self._named.get(name) is piece:
            del self._named[name]
        if is_new:
            self._is_made_no_more(piece)

    def open(self, who: ProcessId, card: int, name: int, size: int) -> Piece | None:
        """Record that a process opens it; None if no process made it and its size is unknown.

        Memory that no process made is charged on that card.
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
        """Record the total that its maker has given back; return how much of that is newly left to others."""
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
        """Release all that a process has on that card, or on any; return the changed allocations."""
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
        """Charge more to the container; return the amount charged."""
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

    # ---- Restoring ---------------------------------------------------------------------------------------------------

    def restore(self, piece: Piece) -> None:
        """Restore an allocation, in order of epochs and after the processes; drop it if no process has it."""
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
