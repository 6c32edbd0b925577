"""CPU and main memory of nodes: the core's own predicate, exact integers in arrays.

Free amounts are negative where other schedulers overcommitted a node; then nothing that needs the resource fits there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api import Resources, Slot
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision.slots import grown

INSUFFICIENT: Final = Reason("insufficient", "Insufficient {}")
"""Too little of a resource is left."""
INSUFFICIENT_CPU: Final = INSUFFICIENT.of("cpu")
INSUFFICIENT_MEMORY: Final = INSUFFICIENT.of("memory")


def minus(room: Resources, needs: Resources) -> Resources:
    return Resources(cpu_milli=room.cpu_milli - needs.cpu_milli, memory_bytes=room.memory_bytes - needs.memory_bytes)


def plus(room: Resources, needs: Resources) -> Resources:
    return Resources(cpu_milli=room.cpu_milli + needs.cpu_milli, memory_bytes=room.memory_bytes + needs.memory_bytes)


class FreeResources:
    """Free CPU and memory by slot, as arrays."""

    def __init__(self) -> None:
        self._cpu_milli = np.zeros(0, dtype=np.int64)
        self._memory_bytes = np.zeros(0, dtype=np.int64)

    def set(self, slot: Slot, free: Resources) -> None:
        self._cpu_milli = grown(self._cpu_milli, slot + 1, 0)
        self._memory_bytes = grown(self._memory_bytes, slot + 1, 0)
        self._cpu_milli[slot], self._memory_bytes[slot] = free.cpu_milli, free.memory_bytes

    def fit(self, needs: Resources, slots: NDArray[np.intp] | slice) -> Flags:
        """Whether each slot has enough. A need of zero is met even where the free amount is negative."""
        cpu_milli = self._cpu_milli[slots]
        fits = cpu_milli >= needs.cpu_milli if needs.cpu_milli else np.ones(cpu_milli.shape, dtype=np.bool_)
        if needs.memory_bytes:
            fits &= self._memory_bytes[slots] >= needs.memory_bytes
        return fits

    def lacking(self, needs: Resources, slots: NDArray[np.intp]) -> dict[Reason, int]:
        """Numbers of these nodes by lacking resource; a node that lacks both counts for its CPU."""
        lacks_cpu = ~self.fit(Resources(cpu_milli=needs.cpu_milli), slots)
        lacks_memory = ~self.fit(Resources(memory_bytes=needs.memory_bytes), slots) & ~lacks_cpu
        return {
            INSUFFICIENT_CPU: int(np.count_nonzero(lacks_cpu)),
            INSUFFICIENT_MEMORY: int(np.count_nonzero(lacks_memory)),
        }
