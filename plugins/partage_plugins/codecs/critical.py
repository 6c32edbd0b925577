"""What an allocation says beside version 1, and a node must announce that it reads. Pure."""

from __future__ import annotations

from typing import Final

from partage_plugins.codecs import budgets
from partage_plugins.vocabulary.gpu import GPU
from partage_plugins.vocabulary.pods import PodRequest

BUDGETS: Final = budgets.FIELD
MOVABLE: Final = "movable"
"""That the memory of some grant moves: a node that does not know this would leave it on the card."""
RESIZE: Final = "resize"
"""In no allocation: a node that announces it puts a higher `gen` in force while containers run."""
CRIT: Final = (BUDGETS, MOVABLE, RESIZE)


def moves(request: PodRequest) -> bool:
    """Whether any container's memory does."""
    return any(ask.movable for ask in request.of(GPU).values())


def needed_by(request: PodRequest) -> frozenset[str]:
    """The names of `CRIT` that an allocation for this request has."""
    has = {BUDGETS: bool(request.uses), MOVABLE: moves(request)}
    return frozenset(name for name, is_there in has.items() if is_there)
