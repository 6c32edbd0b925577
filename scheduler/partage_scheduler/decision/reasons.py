"""Why a pod fits nowhere, in one sentence for people: reasons counted over nodes, most frequent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision.score_cache import ShapeScores


@dataclass(frozen=True)
class FilteredNodes:
    """Nodes filtered out for a pod by a rule outside of plugins."""

    reason: Reason
    slots: Flags
    """Flags by slot; slots beyond the array's end are not filtered out."""

    def at(self, slots: NDArray[np.intp]) -> Flags:
        if slots.size and slots.max() >= self.slots.size:
            return self.flags(int(slots.max()) + 1)[slots]
        return self.slots.take(slots)

    def has(self, slot: int) -> bool:
        return slot < self.slots.size and bool(self.slots[slot])

    def flags(self, size: int) -> Flags:
        whole = np.zeros(size, dtype=np.bool_)
        whole[: min(size, self.slots.size)] = self.slots[:size]
        return whole


@dataclass(frozen=True)
class Explanation:
    """Numbers of nodes on which a pod does not fit, by reason; a node counts once, for the first reason found."""

    nodes: int
    fitting: int
    reasons: Mapping[Reason, int]

    def __str__(self) -> str:
        if not self.nodes:
            return "there is no node"
        counted = sorted(((-count, str(reason)) for reason, count in self.reasons.items() if count))
        why = ", ".join(f"{-count} {reason}" for count, reason in counted)
        return f"{self.fitting}/{self.nodes} nodes" + (f": {why}" if why else "")


def said_of(shape_scores: ShapeScores, slots: NDArray[np.intp]) -> Counter[Reason]:
    """Numbers of these nodes that plugins reject, by reason, whether in the fit check or when allocating."""
    counts = np.bincount(shape_scores.codes[slots])
    refusing = [code for code in np.flatnonzero(counts).tolist() if code]
    found = Counter({shape_scores.said[code]: int(counts[code]) for code in refusing})
    if shape_scores.refused:
        fitting = slots[shape_scores.codes[slots] == 0]
        found.update(shape_scores.refused[slot] for slot in fitting.tolist() if slot in shape_scores.refused)
    return found
