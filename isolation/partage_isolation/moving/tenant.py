"""A tenant: a container whose memory can move, on its card; and a part of that for each of its processes. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from partage_isolation.names import BudgetKey

ALL: Final = (1 << 64) - 1
"""As bytes that may be on the card: whatever it has."""

STEP: Final = 64 << 20
"""Less is not worth an order; what the library moves as one piece."""
ProcessKey = Hashable


class Placed(NamedTuple):
    """What a process says of its memory that can move."""

    resident: int
    moved: int
    """On the host."""
    spent_ns: int = 0
    """In all, on the way."""
    order: int = 0
    """The last one that it follows."""
    waits: int = 0
    """Threads of it that want its memory back."""


_NOTHING: Final = Placed(0, 0)


@dataclass(slots=True)
class Part:
    """What one process has that can move."""

    placed: Placed = _NOTHING
    allowed: int = ALL
    """So much of it may be on the card."""
    order: int = 0
    """The number of the order that says so."""
    most: int = ALL
    """So much was allowed since the last order of which it was heard: it may have put that back."""
    ordered_ns: int = 0
    """When it was last told so."""
    progress_ns: int = 0
    """When it last did some of that, or was first told."""

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
        """Neither on the card nor allowed to be."""
        return self.whole - max(self.placed.resident, min(self.most, self.whole))

    @property
    def leaving(self) -> int:
        """On the card, and told to go."""
        return max(0, self.placed.resident - self.allowed)

    @property
    def is_settled(self) -> bool:
        """It has done all that it was told, as far as whole pieces go."""
        is_full = not self.placed.moved or self.allowed - self.placed.resident < STEP
        return self.placed.order == self.order and not self.leaving and is_full

    @property
    def is_back(self) -> bool:
        return self.allowed == ALL and not self.placed.moved and self.placed.order == self.order


class Stand(Enum):
    IN = "in"
    """All its memory is on the card, and it has turns."""
    CLOSING = "closing"
    """Its last turn ends; nothing has been told to move."""
    OUT = "out"
    """Some of its memory is not there, or is about to leave; it has no turns."""

    __hash__ = object.__hash__


@dataclass(slots=True, eq=False)
class Tenant:
    key: BudgetKey
    share: int
    """In milli of its card."""
    parts: dict[ProcessKey, Part] = field(default_factory=dict[ProcessKey, Part])
    stand: Stand = Stand.IN
    is_suspended: bool = False
    """It is to be out until it is resumed, whether it wants the card or not."""
    by_driver: bool = False
    """The driver moves all of it at once, when root says so; it is never sent out for others."""
    is_resumed: bool = False
    """It is to be in again, whether it wants the card or not."""
    clock: int = 0
    """Time that it held the card, divided by share."""
    held_ns: int = 0
    """As it was when the clock was last set."""
    came_ns: int = 0
    """When it came in."""
    wanted_ns: int = 0
    """When it last wanted the card."""
    waits_since_ns: int = 0
    """From when on it is out and wants the card."""
    owes: int = 0
    """So much it is to let go of once its turn has ended."""
    asks: int = 0
    """So much more it is about to take."""
    asked_ns: int = 0
    hopeless_since_ns: int = 0
    """From when on it asks for what can't be; 0: it does not."""
    times_out: int = 0
    """How often it had to leave."""
    carried: int = 0
    """Bytes that went either way."""
    spent_before_ns: int = 0
    """On the way, by processes that are gone."""

    @property
    def weight(self) -> int:
        return self.share or 1

    @property
    def whole(self) -> int:
        return sum(part.whole for part in self.parts.values())

    @property
    def goes_for_others(self) -> int:
        """So much of it may be sent out."""
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
    def is_calm(self) -> bool:
        """Nothing about it changes by itself."""
        if self.is_suspended:
            return self.stand is Stand.OUT and not self.resident
        return self.stand is Stand.IN and not self.asks

    def waits(self) -> bool:
        return any(part.placed.waits for part in self.parts.values())
