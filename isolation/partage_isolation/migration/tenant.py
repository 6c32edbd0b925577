"""A tenant: a container with movable memory on a card, and its parts, one for each process. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from partage_isolation.names import BudgetKey

ALL: Final = (1 << 64) - 1
"""Value of `allowed` that permits all its memory on the card."""

STEP: Final = 64 << 20
"""Minimum worth an order; the library moves memory in pieces of this size."""
ProcessKey = Hashable


class Placed(NamedTuple):
    """A process's report of its movable memory."""

    resident: int
    moved: int
    """On the host."""
    spent_ns: int = 0
    """Total time spent moving."""
    order: int = 0
    """The last order that it follows."""
    waits: int = 0
    """Its threads that want its memory back."""


_NOTHING: Final = Placed(0, 0)


@dataclass(slots=True)
class Part:
    """One process's movable memory."""

    placed: Placed = _NOTHING
    allowed: int = ALL
    """Bytes of it that may be on the card."""
    order: int = 0
    """Number of the order with that limit."""
    most: int = ALL
    """Most that was allowed since the last acknowledged order: it may have moved that back in."""
    ordered_ns: int = 0
    """When the order was last sent."""
    progress_ns: int = 0
    """When the process last made progress, or was first sent the order."""

    @property
    def whole(self) -> int:
        return self.placed.resident + self.placed.moved

    def says(self, placed: Placed, now: int) -> None:
        if placed.order == self.order:
            self.most = self.allowed
            if placed != self.placed:
                self.progress_ns = now
        self.placed = placed

    def is_told(self, allowed: int, order: int, now: int) -> None:
        self.allowed, self.order, self.most = allowed, order, max(self.most, allowed)
        self.ordered_ns = self.progress_ns = now

    @property
    def out(self) -> int:
        """Bytes neither on the card nor allowed to be."""
        return self.whole - max(self.placed.resident, min(self.most, self.whole))

    @property
    def leaving(self) -> int:
        """Bytes on the card that were ordered to leave."""
        return max(0, self.placed.resident - self.allowed)

    @property
    def is_settled(self) -> bool:
        """It has followed its order, as far as whole pieces allow."""
        is_full = not self.placed.moved or self.allowed - self.placed.resident < STEP
        return self.placed.order == self.order and not self.leaving and is_full

    @property
    def is_back(self) -> bool:
        return self.allowed == ALL and not self.placed.moved and self.placed.order == self.order


class Residency(Enum):
    IN = "in"
    """All its memory is on the card, and it gets time slices."""
    CLOSING = "closing"
    """Its last time slice is ending; no memory has been ordered to move."""
    OUT = "out"
    """Some of its memory is not on the card, or is about to leave; it gets no time slices."""

    __hash__ = object.__hash__


@dataclass(slots=True, eq=False)
class Tenant:
    key: BudgetKey
    share: int
    """In milli of its card."""
    parts: dict[ProcessKey, Part] = field(default_factory=dict[ProcessKey, Part])
    stand: Residency = Residency.IN
    is_suspended: bool = False
    """It must be out until it is resumed, whether it wants the card or not."""
    by_driver: bool = False
    """The driver moves all of it at once, when root requests that; it is never moved out for others."""
    is_resumed: bool = False
    """It must be in again, whether it wants the card or not."""
    clock: int = 0
    """Time for which it held the card, divided by share."""
    held_ns: int = 0
    """Value when the clock was last updated."""
    came_ns: int = 0
    """When it became resident."""
    wanted_ns: int = 0
    """When it last wanted the card."""
    waits_since_ns: int = 0
    """Since when it has been out and wanted the card."""
    owes: int = 0
    """Bytes that it must release once its time slice has ended."""
    asks: int = 0
    """Bytes that it is about to take."""
    asked_ns: int = 0
    hopeless_since_ns: int = 0
    """When it started to ask for more than can ever fit; 0: it does not."""
    times_out: int = 0
    """How often it had to leave."""
    carried: int = 0
    """Bytes moved in either direction."""
    spent_before_ns: int = 0
    """Time spent moving, of processes that are gone."""

    @property
    def weight(self) -> int:
        return self.share or 1

    @property
    def whole(self) -> int:
        return sum(part.whole for part in self.parts.values())

    @property
    def goes_for_others(self) -> int:
        """Bytes that may be moved out for others."""
        return 0 if self.by_driver else self.whole

    @property
    def resident(self) -> int:
        return sum(part.placed.resident for part in self.parts.values())

    @property
    def out(self) -> int:
        return sum(part.out for part in self.parts.values())

    @property
    def moved(self) -> int:
        return sum(part.placed.moved for part in self.parts.values())

    @property
    def leaving(self) -> int:
        return sum(part.leaving for part in self.parts.values())

    @property
    def spent_ns(self) -> int:
        return self.spent_before_ns + sum(part.placed.spent_ns for part in self.parts.values())

    @property
    def is_back(self) -> bool:
        return all(part.is_back for part in self.parts.values())

    @property
    def is_away(self) -> bool:
        """All its processes have confirmed that nothing of them is on the card."""
        return self.stand is Residency.OUT and all(
            part.is_settled and not part.placed.resident for part in self.parts.values()
        )

    @property
    def is_calm(self) -> bool:
        """Nothing about it changes without an event."""
        if self.is_suspended:
            return self.is_away
        return self.stand is Residency.IN and not self.asks

    def waits(self) -> bool:
        return any(part.placed.waits for part in self.parts.values())
