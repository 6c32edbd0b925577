"""Fields of an allocation beyond version 1, which a node must announce that it can read. Pure."""

from __future__ import annotations

from typing import Final

from partage_plugins.api.gpu import GPU
from partage_plugins.api.pods import PodRequest
from partage_plugins.codecs import budgets

BUDGETS: Final = budgets.FIELD
MOVABLE: Final = "movable"
"""Some grant's memory is movable: a node that does not know this field would leave it on the card."""
RESIZE: Final = "resize"
"""Occurs in no allocation: a node that announces it can enforce a higher `gen` while containers run."""
SUSPENDED: Final = "suspended"
"""The pod's memory is off its cards, and nothing of it starts: a node that ignored this would give them out twice."""
CRIT: Final = (BUDGETS, MOVABLE, RESIZE, SUSPENDED)


def moves(request: PodRequest) -> bool:
    """Whether any container's memory is movable."""
    return any(ask.movable for ask in request.of(GPU).values())


def needed_by(request: PodRequest) -> frozenset[str]:
    """The names of `CRIT` that an allocation for this request contains."""
    has = {BUDGETS: bool(request.uses), MOVABLE: moves(request)}
    return frozenset(name for name, is_there in has.items() if is_there)
