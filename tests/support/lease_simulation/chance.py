"""Numbers by chance that are the same each time. Pure."""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1


class Chance:
    """A small generator (splitmix64) with a seed."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, most: int) -> int:
        """0 or more, less than that."""
        self._state = self._state + 0x9E3779B97F4A7C15 & _MASK
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return (mixed ^ mixed >> 31) % most

    def fork(self) -> Chance:
        """Another one that does not depend on how often this one is asked later."""
        return Chance(self.below(1 << 63))
