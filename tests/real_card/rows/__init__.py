"""The rows of all three parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from real_card.row import Part, Row
from real_card.rows import bare, library, time

ROWS: Final[Mapping[Part, Sequence[Row]]] = {Part.BARE: bare.ROWS, Part.LIBRARY: library.ROWS, Part.TIME: time.ROWS}
"""By part, in the order in which they run: what the others rest on comes first."""
EVERY: Final[Sequence[Row]] = [row for rows in ROWS.values() for row in rows]
