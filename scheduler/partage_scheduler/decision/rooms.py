"""CPU and main memory of nodes: the core's own predicate, exact integers in arrays.

What is free may be less than nothing where others placed pods past us; then nothing fits there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.vocabulary import Room, Slot
from partage_plugins.vocabulary.reasons import Reason
from partage_scheduler.decision.slots import grown

INSUFFICIENT: Final = Reason("insufficient", "Insufficient {}")
"""Too little of a resource is left."""
INSUFFICIENT_CPU: Final = INSUFFICIENT.of("cpu")
INSUFFICIENT_MEMORY: Final = INSUFFICIENT.of("memory")


def minus(room: Room, needs: Room) -> Room:
    return Room(cpu_milli=room.cpu_milli - needs.cpu_milli, memory_bytes=room.memory_bytes - needs.memory_bytes)


def plus(room: Room, needs: Room) -> Room:
    return Room(cpu_milli=room.cpu_milli + needs.cpu_milli, memory_bytes=room.memory_bytes + needs.memory_bytes)


class Rooms:
    """What each slot's node has free, as arrays."""

    def __init__(self) -> None:
        self._cpu_milli = np.zeros(0, dtype=np.int64)
        self._memory_bytes = np.zeros(0, dtype=np.int64)

    def set(self, slot: Slot, free: Room) -> None:
        self._cpu_milli = grown(self._cpu_milli, slot + 1, 0)
        self._memory_bytes = grown(self._memory_bytes, slot + 1, 0)
        self._cpu_milli[slot], self._memory_bytes[slot] = free.cpu_milli, free.memory_bytes

    def fit(self, needs: Room, slots: NDArray[np.intp] | slice) -> Flags:
        """A pod that needs none of something fits even where less than none is left."""
        cpu_milli = self._cpu_milli[slots]
        fits = cpu_milli >= needs.cpu_milli if needs.cpu_milli else np.ones(cpu_milli.shape, dtype=np.bool_)
        if needs.memory_bytes:
            fits &= self._memory_bytes[slots] >= needs.memory_bytes
        return fits

    def lacking(self, needs: Room, slots: NDArray[np.intp]) -> dict[Reason, int]:
        """On how many of these nodes what is lacking; a node that lacks both counts for its CPU."""
        lacks_cpu = ~self.fit(Room(cpu_milli=needs.cpu_milli), slots)
        lacks_memory = ~self.fit(Room(memory_bytes=needs.memory_bytes), slots) & ~lacks_cpu
        return {
            INSUFFICIENT_CPU: int(np.count_nonzero(lacks_cpu)),
            INSUFFICIENT_MEMORY: int(np.count_nonzero(lacks_memory)),
        }
