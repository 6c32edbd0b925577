"""A simple base class for fits and scores, with one call for each node instead of arrays.

It costs a Python call for each node and decision: fine for hundreds of nodes, slow for thousands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.api.names import Slot
from partage_plugins.api.pods import PodRequest
from partage_plugins.api.reasons import Reason
from partage_plugins.hooks import hookimpl


class PerNode(ABC):
    """Base of a scheduler plugin that handles one node at a time."""

    @abstractmethod
    def why_not(self, request: PodRequest, slot: Slot) -> str | Reason | None:
        """None if the request fits on the node, else the reason: a stable text without numbers, or a `Reason`."""

    def score(self, request: PodRequest, slot: Slot) -> float:
        """The node's score, higher is better; only called where the request fits."""
        del request, slot
        return 0.0

    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        """Call `why_not` for each node."""
        answers = [self.why_not(request, Slot(slot)) for slot in slots.tolist()]
        reasons = tuple(dict.fromkeys(answer for answer in answers if answer is not None))
        places = {reason: place for place, reason in enumerate(reasons)}
        codes = [0 if answer is None else places[answer] for answer in answers]
        return Fits(
            np.fromiter((answer is None for answer in answers), np.bool_, len(answers)),
            np.array(codes, dtype=np.uint8),
            reasons,
        )

    @hookimpl
    def partage_scores(self, request: PodRequest, slots: Slots) -> Scores:
        """Call `score` for each node."""
        return np.array([self.score(request, Slot(slot)) for slot in slots.tolist()], dtype=np.float32)
