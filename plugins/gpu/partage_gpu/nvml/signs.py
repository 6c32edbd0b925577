"""Vital signs: the few calls that show whether a card is as it was, and in what condition. In the child process alone.

A node at rest pays for these alone, for every card every second: two calls, one where a card can't do MIG.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml.calls import Handle, NvmlError, optional

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


_UNKNOWN: Final = Condition()


class Signs(NamedTuple):
    """Of one card; different ones mean that a look shows something new."""

    fault: str | None = None
    condition: Condition = _UNKNOWN
    instances: tuple[str, ...] | None = None
    """UUIDs; None where MIG is off."""


class VitalSigns:
    """Of this process's cards, and what must be asked only once."""

    def __init__(self) -> None:
        self._cards: dict[int, Handle] = {}
        self._never_mig: set[int] = set()

    def read(self) -> tuple[Signs, ...]:
        return tuple(map(self._of_card, range(nvml.of_node(nvml.count))))

    def _of_card(self, index: int) -> Signs:
        try:
            if index not in self._cards:
                self._cards[index] = nvml.card(index)
            card = self._cards[index]
            return Signs(None, optional(condition_of, card) or _UNKNOWN, self._instances(card, index))
        except NvmlError as refused:
            return Signs(fault=str(refused))

    def _instances(self, card: Handle, index: int) -> tuple[str, ...] | None:
        if index in self._never_mig:
            return None
        is_mig = optional(nvml.is_mig, card)
        if is_mig is None:
            self._never_mig.add(index)
        if not is_mig:
            return None
        return tuple(optional(nvml.uuid, one) or "" for one in optional(nvml.instances, card) or ())
