"""Arrays that are indexed by slots and grow by doubling, so that adding a node costs next to nothing."""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

_SMALLEST: Final = 64
Number = TypeVar("Number", bound=np.generic)


def grown(array: NDArray[Number], size: int, fill: float) -> NDArray[Number]:
    """The array itself where it is long enough, else a longer copy, filled up."""
    if size <= array.size:
        return array
    longer = np.full(max(size, 2 * array.size, _SMALLEST), fill, dtype=array.dtype)
    longer[: array.size] = array
    return longer
