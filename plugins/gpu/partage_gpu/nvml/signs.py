"""Vital signs: the few calls that show whether a card is as it was. In the child process alone.

A node at rest pays for these alone, for every card every second: two calls, one where a card can't do MIG.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml.calls import Handle, Refused, optional
from partage_gpu.nvml.condition import Condition, condition_of

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
        except Refused as refused:
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
