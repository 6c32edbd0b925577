"""Answers about many nodes at once, in arrays: position i speaks of `slots[i]`. The scheduler's side alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partage_plugins.vocabulary.reasons import Reason

Slots: TypeAlias = NDArray[np.int32]
Scores: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]


class Fits(NamedTuple):
    """One plugin's verdict on many nodes."""

    fits: Flags
    codes: Codes | Callable[[], Codes]
    """Where a node does not fit: which of the reasons. Elsewhere without meaning. Or who says it: most decisions never
    ask, and those that do ask at once."""
    reasons: tuple[str | Reason, ...]
    """Few and stable. A text is in words for the user, `not enough memory on any card`, and any change may take it
    away; a `Reason` says itself whether it lasts."""
