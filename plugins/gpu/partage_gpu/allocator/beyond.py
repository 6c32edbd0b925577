"""Cards whose memory is oversubscribed: what is promised of each, and what is left, as arrays.

On other cards none of this is needed: there movable memory counts like all other memory, with the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from partage_plugins.answers import Ints
from partage_plugins.api.card_memory import STAYS_BYTES, CardMemory, Promised

MOST_BYTES: Final = 1 << 60
"""Upper limit for a grant on oversubscribed cards: movable memory must fit into main memory."""


class Pledges:
    """The promises on one card."""

    __slots__ = ("_fixed", "_total", "_turns", "capacity")

    def __init__(self, capacity: CardMemory) -> None:
        self.capacity = capacity
        self._total = self._fixed = 0
        self._turns = Counter[int]()
        """The number of pods for each size of a turn."""

    @property
    def now(self) -> Promised:
        return Promised(self._total, self._fixed, max(self._turns, default=0))

    def count(self, promised: Promised, sign: int) -> int:
        """Adds (`sign` 1) or removes (-1) a pod; returns what is left for memory that does not move."""
        self._total += sign * promised.total
        self._fixed += sign * promised.fixed
        self._turns[promised.turn] += sign
        if not self._turns[promised.turn]:
            del self._turns[promised.turn]
        return self.capacity.left(self.now, movable=False)

    def slack(self) -> tuple[int, int, int]:
        """How far both limits (promises, card) exceed what is left for unmovable memory; and the turn."""
        now, (has, beyond) = self.now, self.capacity
        left = self.capacity.left(now, movable=False)
        return has + beyond - now.total - left, has - now.fixed - left, now.turn


class MemoryLeft(NamedTuple):
    """What is left of cards, by node and card."""

    within: Ints
    """Of the limit for promises."""
    beside: Ints
    """Of the card, beside all that never leaves it."""
    turn: Ints
    """The most that a turn currently needs of `beside`."""


def left_for_movers(left: MemoryLeft) -> Ints:
    """The most that one more movable container may have, computed as in `CardMemory.left`."""
    beside: Ints = np.where(left.turn <= left.beside - STAYS_BYTES, left.beside, left.beside - left.turn)
    return np.minimum(left.within, beside)


class Held(NamedTuple):
    """The grants of one pod's containers of one role on each card."""

    total: Ints
    fixed: Ints
    turn: Ints

    def with_one(self, needs: Ints, *, movable: bool, is_init: bool) -> Held:
        """The grants with one more container; init containers run one after another."""
        fixed = np.minimum(needs, STAYS_BYTES) if movable else needs
        if is_init:  # its turn includes what stays of it: it runs alone
            turn = np.maximum(self.turn, needs) if movable else self.turn
            return Held(np.maximum(self.total, needs), np.maximum(self.fixed, fixed), turn)
        turn = np.maximum(self.turn, needs - fixed) if movable else self.turn
        return Held(self.total + needs, self.fixed + fixed, turn)


def left_with(left: MemoryLeft, held: Mapping[str, Held]) -> Ints:
    """What is left for unmovable memory with a pod on each card; negative where the pod does not fit.

    Computed as `card_memory.of_pod` and `CardMemory` do for one card.
    """
    sidecar, app, init = held["sidecar"], held["app"], held["init"]
    total = sidecar.total + np.maximum(app.total, init.total)
    fixed = sidecar.fixed + np.maximum(app.fixed, init.fixed)
    apps = app.fixed + np.maximum(sidecar.turn, app.turn)
    inits = np.maximum(init.fixed + sidecar.turn, init.turn)
    most = sidecar.fixed + np.maximum(apps, inits)
    beside = left.beside - np.maximum(fixed + left.turn, most)
    found: Ints = np.minimum(left.within - total, beside)
    return found
