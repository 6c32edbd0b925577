"""Arrays of figures, as numpy has them typed."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]
