"""Results for many nodes at once, as arrays: position i refers to `slots[i]`. Scheduler side only."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partage_plugins.api.reasons import Reason

Slots: TypeAlias = NDArray[np.int32]
Scores: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]


class Fits(NamedTuple):
    """One plugin's filter result for many nodes."""

    fits: Flags
    codes: Codes | Callable[[], Codes]
    """For each node that does not fit, an index into `reasons`; undefined elsewhere. Or a function that returns the
    codes: most decisions never need them, and the others call it at once."""
    reasons: tuple[str | Reason, ...]
    """Few and stable. A text is shown to the user as it is, such as `not enough memory on any card`, and any change may
    remove it; a `Reason` states itself whether it lasts."""
