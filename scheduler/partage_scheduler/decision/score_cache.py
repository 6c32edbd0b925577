"""Score cache: scores of all nodes for each request shape, recomputed only where something changed.

Each change has a tick, and each slot has the tick of its last change. A cache entry has the tick up to which it knows
of changes, so its stale slots are those of the last few changes or, after many, the result of one comparison over all
slots. Stale slots are recomputed on demand: mostly the few nodes that changed since the last pod of this shape, fewer
if only some nodes matter. CPU and memory are not part of a shape unless a plugin includes them: the core compares them
for each pod, which costs less than an entry for each amount of memory that pods request. The cache is bounded: the
least recently used entry is evicted first.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags, Scores
from partage_plugins.api import Slot
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision.slots import grown

NO_FIT: Final = -math.inf
"""The score of a node where a request does not fit, and of a slot without a node."""
_NO_FIT: Final = np.float32(NO_FIT)
SHAPES: Final = 512
"""Cache entries that are kept; together 13 MB for each 5,000 nodes."""
_CHANGES: Final = 512
"""Changes that are recorded one by one for entries that know all before them; older entries compare all slots."""
MOST_SAID: Final = 4096
"""Distinct reasons that an entry remembers; a plugin with figures in its reasons may produce new ones without end."""
_NONE: Final = Reason("none", "nothing is in the way")
Ask = Callable[[NDArray[np.int32], Scores], None]
"""Writes scores of these slots into an array by slot, in which no node fits at first."""


class ShapeScores:
    """The scores of one shape, by slot."""

    __slots__ = ("codes", "known_until", "refused", "said", "said_until", "scores", "unasked")

    def __init__(self) -> None:
        self.scores: Scores = np.zeros(0, dtype=np.float32)
        self.unasked: Flags = np.zeros(0, dtype=np.bool_)
        """Slots that changed and were not recomputed since."""
        self.known_until = 0
        self.refused: dict[int, Reason] = {}
        """Slots where an owning plugin refused to allocate what all plugins accepted, and why; until they change."""
        self.codes: NDArray[np.uint16] = np.zeros(0, dtype=np.uint16)
        """Why it does not fit, as indexes into `said`; 0 where it fits or was not asked."""
        self.said: list[Reason] = [_NONE]
        self.said_until = 0

    def refuse(self, slot: Slot, why: Reason) -> None:
        self.scores[slot] = NO_FIT
        self.refused[slot] = why

    def forget(self, slots: NDArray[np.int32], size: int) -> None:
        """Marks these slots as stale; there are `size` slots now."""
        self.scores = grown(self.scores, size, NO_FIT)
        self.scores[slots] = NO_FIT
        self.unasked = grown(self.unasked, size, fill=False)
        self.unasked[slots] = True
        if self.refused:
            for slot in slots.tolist():
                self.refused.pop(slot, None)

    def to_ask(self, among: NDArray[np.intp] | None) -> NDArray[np.int32]:
        """Slots for which plugins must be called, so that all of `among` (None: all slots) are up to date."""
        found = np.flatnonzero(self.unasked) if among is None else among[self.unasked[among]]
        return found.astype(np.int32)

    def explain(self, slots: NDArray[np.intp], codes: NDArray[np.uint16], table: tuple[Reason, ...]) -> None:
        """Stores why plugins reject these slots: 0 if they don't, or one more than a reason's index in the table."""
        places = {reason: place for place, reason in enumerate(self.said)}
        for reason in table:
            if reason not in places:
                places[reason] = len(self.said)
                self.said.append(reason)
        self.codes[slots] = np.array([0, *(places[reason] for reason in table)], dtype=np.uint16)[codes]


def best_of(scores: Scores) -> NDArray[np.intp]:
    """The slots with the highest score; an empty array if it fits nowhere."""
    highest = scores.item(scores.argmax()) if scores.size else NO_FIT
    if highest == NO_FIT:
        return np.zeros(0, dtype=np.intp)
    places: NDArray[np.intp] = np.equal(scores, highest).nonzero()[0]
    return places


def only(possible: Flags, scores: Scores) -> Scores:
    return np.where(possible, scores, _NO_FIT)


class ScoreCache:
    """Cache entries of all shapes, and when each slot changed last."""

    def __init__(self, shapes: int = SHAPES) -> None:
        self._shapes = shapes
        self._by_shape: OrderedDict[Hashable, ShapeScores] = OrderedDict()
        self._changed = np.zeros(0, dtype=np.int64)
        self._last: list[Slot] = []
        """The slots of the last changes, one for each tick after `_told`."""
        self._told = 0
        self._tick = 0
        self._end = 0

    def __len__(self) -> int:
        return len(self._by_shape)

    def changed(self, slot: Slot) -> None:
        self._tick += 1
        self._changed = grown(self._changed, slot + 1, 0)
        self._changed[slot] = self._tick
        self._end = max(self._end, slot + 1)
        self._last.append(slot)
        if len(self._last) > 2 * _CHANGES:
            del self._last[:_CHANGES]
            self._told += _CHANGES

    def forget(self) -> None:
        self._by_shape.clear()

    def of(self, shape: Hashable, ask: Ask, among: NDArray[np.intp] | None = None) -> ShapeScores:
        """The shape's entry, up to date for all slots or those in `among`. If `ask` fails, the next call asks again."""
        shape_scores = self._by_shape.get(shape)
        if shape_scores is None:
            shape_scores = self._made(shape)
        else:
            self._by_shape.move_to_end(shape)
        if shape_scores.known_until < self._tick:
            shape_scores.forget(self._changed_since(shape_scores.known_until), self._end)
            shape_scores.known_until = self._tick
        asked = shape_scores.to_ask(among)
        if asked.size:
            ask(asked, shape_scores.scores)
            shape_scores.unasked[asked] = False
        return shape_scores

    def unexplained(self, shape_scores: ShapeScores) -> NDArray[np.intp]:
        """Slots whose reasons must be computed again; the caller calls `explained` when that is done."""
        if len(shape_scores.said) > MOST_SAID:
            shape_scores.said, shape_scores.said_until = [_NONE], 0
        stale = np.flatnonzero(self._changed[: self._end] > shape_scores.said_until)
        shape_scores.codes = grown(shape_scores.codes, self._end, 0)
        shape_scores.codes[stale] = 0
        return stale

    def _changed_since(self, tick: int) -> NDArray[np.int32]:
        if tick >= self._told:
            return np.array(sorted(set(self._last[tick - self._told :])), dtype=np.int32)
        return np.flatnonzero(self._changed[: self._end] > tick).astype(np.int32)

    def explained(self, shape_scores: ShapeScores) -> None:
        shape_scores.said_until = self._tick

    def _made(self, shape: Hashable) -> ShapeScores:
        if len(self._by_shape) >= self._shapes:
            self._by_shape.popitem(last=False)
        shape_scores = self._by_shape[shape] = ShapeScores()
        return shape_scores
