"""Vital signs: the few calls that show whether a card has changed, and its condition. Used only in the child process.

They are the only cost of an idle node, for every card every second: two calls, or one if a card does not support MIG.
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
"""NVML's field numbers."""
_NO_RESET: Final = (None, 0, 3)
"""Recovery actions without a reset: unknown, none, drain peers. All others are a reset of card, bus or machine."""


class Condition(NamedTuple):
    ecc_uncorrected: int | None = None
    row_remap_failed: bool = False
    needs_reset: bool = False


def condition_of(card: Handle) -> Condition:
    """A card's condition. Pages were retired up to Turing, rows are remapped since Ampere: the other is None."""
    uncorrected, pages, rows, failed, recovery = nvml.fields(card, _FIELDS)
    return Condition(uncorrected, bool(failed), bool(pages or rows) or recovery not in _NO_RESET)


_UNKNOWN: Final = Condition()


class Signs(NamedTuple):
    """The vital signs of one card; a difference means that a look shows a change."""

    fault: str | None = None
    condition: Condition = _UNKNOWN
    instances: tuple[str, ...] | None = None
    """UUIDs; None if MIG is off."""


class VitalSigns:
    """The vital signs of this process's cards, and what needs to be queried only once."""

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
