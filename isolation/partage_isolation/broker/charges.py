"""What is charged to the processes of one container, card by card, as sums that follow each change.

Pure. What each process was last counted with is kept beside the sums, so that they are always the sums of that, and
whatever is counted anew takes the place of what was counted before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from partage_isolation.broker.pieces import ProcessId


class Charge(NamedTuple):
    """Bytes."""

    asked: int = 0
    """Lent to programs, or freed by them without proof."""
    fixed: int = 0
    """What no program asked for: contexts and the like."""


NOTHING: Final = Charge()


class Charges:
    """Of one container."""

    def __init__(self) -> None:
        self._each: dict[tuple[ProcessId, int], Charge] = {}
        self._sums: dict[int, Charge] = {}

    def on(self, card: int) -> Charge:
        """To all its processes on that card."""
        return self._sums.get(card, NOTHING)

    def count(self, who: ProcessId, card: int, now: Charge) -> None:
        """To that process it is so much now."""
        place = who, card
        before = self._each.get(place, NOTHING)
        if now != NOTHING:
            self._each[place] = now
        else:
            self._each.pop(place, None)
        asked, fixed = self._sums.get(card, NOTHING)
        self._sums[card] = Charge(asked + now.asked - before.asked, fixed + now.fixed - before.fixed)
