"""A simulated card: a link over which memory moves, and time that is given to resident containers by share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.migration.room import Fact, Late, MigrationSettings, Order, Room, Turn
from partage_isolation.migration.tenant import ALL, Placed
from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.durations import MS, SECOND

GIB: Final = 1 << 30
PIECE: Final = 64 << 20
LINK: Final = 50
"""Bytes per nanosecond, in each direction."""
STEP_NS: Final = 10 * MS


@dataclass
class Holder:
    """A container of one process, which follows orders."""

    key: BudgetKey
    share: int
    whole: int
    stays: int = 0
    """Memory that does not move."""
    wants: bool = True
    obeys: bool = True
    by_driver: bool = False
    moved: int = 0
    allowed: int = ALL
    order: int = 0
    spent_ns: int = 0
    held_ns: int = 0
    is_in: bool = True
    as_share: int = 0
    late: bool = False

    @property
    def resident(self) -> int:
        return self.whole - self.moved

    def placed(self) -> Placed:
        waits = self.wants and bool(self.moved)
        return Placed(self.resident, self.moved, self.spent_ns, self.order, int(waits))


@dataclass
class SimulatedCard:
    room_bytes: int
    holders: list[Holder]
    pace: MigrationSettings = field(default_factory=MigrationSettings)
    orders_lost: int = 0
    now: int = 0
    idle_ns: int = 0
    """Time in which no container computed although one wanted to."""

    def __post_init__(self) -> None:
        self.room = Room(self.pace)
        for holder in self.holders:
            self.add(holder)

    def add(self, holder: Holder) -> None:
        if holder not in self.holders:
            self.holders.append(holder)
        self.room.put(holder.key, holder.share, by_driver=holder.by_driver)
        self.room.placed(holder.key, holder.key, holder.placed(), self.now)

    def remove(self, holder: Holder) -> None:
        self.holders.remove(holder)
        self.room.gone(holder.key, holder.key)
        self.room.drop(holder.key)

    def facts(self) -> dict[BudgetKey, Fact]:
        return {
            each.key: Fact(each.whole + each.stays, wants=each.wants, held_ns=each.held_ns, is_at_rest=not each.is_in)
            for each in self.holders
        }

    def held(self) -> int:
        return sum(each.resident + each.stays for each in self.holders)

    def run(self, for_ns: int) -> Iterator[None]:
        """Run one step after the other; the caller can check the state after each."""
        until = self.now + for_ns
        while self.now < until:
            self.now += STEP_NS
            self._compute()
            self._move()
            self._decide()
            yield

    def _compute(self) -> None:
        there = [each for each in self.holders if each.is_in and each.wants and not each.moved]
        shares = sum(each.as_share or 1 for each in there)
        for each in there:
            each.held_ns += STEP_NS * (each.as_share or 1) // shares
        if not there and any(each.wants for each in self.holders):
            self.idle_ns += STEP_NS

    def _move(self) -> None:
        """All that leave share one direction of the link, all that come the other."""
        leaving = [each for each in self.holders if each.resident > each.allowed and each.obeys]
        coming = [each for each in self.holders if each.moved and each.allowed > each.resident and each.obeys]
        for some, is_out in ((leaving, True), (coming, False)):
            for each in some:
                part = LINK * STEP_NS // len(some) // PIECE * PIECE
                if is_out:
                    each.moved += min(part, -(-(each.resident - each.allowed) // PIECE) * PIECE, each.resident)
                else:
                    each.moved -= min(part, each.moved, (min(each.allowed, each.whole) - each.resident))
                each.spent_ns += STEP_NS

    def _decide(self) -> None:
        for holder in self.holders:
            if holder.obeys:
                self.room.placed(holder.key, holder.key, holder.placed(), self.now)
        by_key = {holder.key: holder for holder in self.holders}
        for act in self.room.decide(self.facts(), self.room_bytes, self.now):
            match act:
                case Turn(key, is_in, share):
                    by_key[key].is_in, by_key[key].as_share = is_in, share
                case Order(key, _, allowed, number):
                    if self.orders_lost:
                        self.orders_lost -= 1
                    elif by_key[key].obeys:
                        by_key[key].allowed, by_key[key].order = allowed, number
                case Late(key, _):
                    by_key[key].late = True


def seconds(number: float) -> int:
    return round(number * SECOND)
