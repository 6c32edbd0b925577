"""Reads in what condition a card's memory is, and whether the driver wants it reset: five values in one call."""

from __future__ import annotations

from typing import Final, NamedTuple

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml.calls import Handle

_UNCORRECTED: Final = 4
_PAGES_PENDING: Final = 31
_ROWS_PENDING: Final = 144
_ROWS_FAILED: Final = 145
_RECOVERY: Final = 230
_FIELDS: Final = (_UNCORRECTED, _PAGES_PENDING, _ROWS_PENDING, _ROWS_FAILED, _RECOVERY)
"""NVML's numbers."""
_NO_RESET: Final = (None, 0, 3)
"""What the driver wants done: unknown, nothing, to drain peers. All else is a reset of card, bus or machine."""


class Condition(NamedTuple):
    ecc_uncorrected: int | None = None
    row_remap_failed: bool = False
    needs_reset: bool = False


def condition_of(card: Handle) -> Condition:
    """Pages were retired up to Turing, rows are remapped since Ampere: what a card does not have is None."""
    uncorrected, pages, rows, failed, recovery = nvml.fields(card, _FIELDS)
    return Condition(uncorrected, bool(failed), bool(pages or rows) or recovery not in _NO_RESET)
