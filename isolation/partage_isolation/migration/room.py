"""The memory of one card, and which of its tenants are resident.

Pure. The sum of what is on the card, was allowed to come, or may be held by containers that never move is never more
than the card has. A tenant is entirely on the card or gets no time slices. Among tenants that are out and want the
card, the next is the one that has had the least of it for its share. A resident tenant stays long enough to make its
move worthwhile, and leaves immediately when idle. Where there is room, the next tenant's memory is moved in while
another computes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from partage_isolation.migration.tenant import ALL, STEP, Part, Placed, ProcessKey, Residency, Tenant
from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.durations import MS, SECOND
from partage_plugins.api.limits import WHOLE_MILLI

_ORDERS: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    worth: int = 9
    """A tenant is resident this many times as long as its move takes."""
    longest_wait_ns: int = 30 * SECOND
    """After this wait a tenant is next, at any cost."""
    idle_ns: int = 50 * MS
    """A tenant that has not wanted the card for this long may be moved out for another."""
    again_ns: int = 50 * MS
    """An order without an effect for this long is repeated."""
    asks_ns: int = 200 * MS
    """A tenant that needs more room repeats its request within this time."""
    late_ns: int = 2 * SECOND
    """A tenant that was ordered to leave, and has not moved anything for this long, is late."""
    first_rate: int = 8
    """Assumed bytes per nanosecond of a move, until the rate is known."""


class Fact(NamedTuple):
    """Data on a tenant beside its movable memory."""

    charged: int
    """All memory that is charged to it, wherever it lies."""
    wants: bool
    """It has the card, or waits for it."""
    held_ns: int
    """Total time for which it has had the card."""
    is_at_rest: bool
    """It has no time slice, and none that is draining."""


class Order(NamedTuple):
    """Order to a process: this much of its memory may be on the card."""

    key: BudgetKey
    process: ProcessKey
    allowed: int
    number: int


class Turn(NamedTuple):
    """Message to the arbiter: whether a tenant gets time slices, and its effective share."""

    key: BudgetKey
    is_in: bool
    share: int


class Late(NamedTuple):
    """The tenant was ordered to leave and does not."""

    key: BudgetKey
    held: int
    """Bytes that others wait for."""


Act = Order | Turn | Late


class May(Enum):
    NOW = "now"
    LATER = "later"
    NEVER = "never"


class Room:
    """The memory of one card, with all its tenants."""

    def __init__(self, pace: MigrationSettings = MigrationSettings(), *, first_order: int = 1) -> None:
        self.tenants: dict[BudgetKey, Tenant] = {}
        self._pace, self._orders = pace, first_order
        self._acts: list[Act] = []
        self._told: dict[BudgetKey, Turn] = {}
        self._excess = 0
        """The amount by which the memory of all that want the card exceeds it."""

    # ---- Events ------------------------------------------------------------------------------------------------------

    def put(self, key: BudgetKey, share: int, *, suspended: bool = False, by_driver: bool = False) -> Tenant:
        """Add a tenant, or update its share and whether it is suspended."""
        tenant = self.tenants.get(key)
        if tenant is None:
            tenant = self.tenants[key] = Tenant(key, share, by_driver=by_driver)
        tenant.is_resumed = not suspended and (by_driver or tenant.is_resumed or tenant.is_suspended)
        tenant.share, tenant.is_suspended = share, suspended
        self._told.pop(key, None)
        return tenant

    def drop(self, key: BudgetKey) -> None:
        self.tenants.pop(key, None)
        self._told.pop(key, None)

    def placed(self, key: BudgetKey, process: ProcessKey, said: Placed, now: int) -> None:
        tenant = self.tenants[key]
        part = tenant.parts.get(process)
        if part is None:
            # A process that an earlier broker moved out stays out until its turn.
            allowed = said.resident if said.moved else ALL
            part = tenant.parts[process] = Part(said, allowed=allowed, order=said.order, most=allowed)
            if said.moved:
                tenant.stand, tenant.waits_since_ns = Residency.OUT, now
        tenant.carried += abs(said.moved - part.placed.moved)
        part.says(said, now)

    def gone(self, key: BudgetKey, process: ProcessKey) -> None:
        """Remove a process; its container is charged for its memory until the card no longer shows it."""
        tenant = self.tenants.get(key)
        part = tenant.parts.pop(process, None) if tenant else None
        if tenant and part:
            tenant.spent_before_ns += part.placed.spent_ns

    def may_take(self, key: BudgetKey, amount: int, facts: Mapping[BudgetKey, Fact], free: int, now: int) -> May:
        """Whether the tenant may take this much more of the card now. If it must wait, room is made, and it asks again.

        NEVER if it then could not be on the card together with others' non-movable memory, or one of them could not be
        with its: a tenant must not wait for what can't come. Others' amounts are known with a short delay.
        """
        tenant = self.tenants[key]
        if tenant.is_suspended:
            return May.LATER
        if tenant.stand is Residency.IN and self._free(facts, free) >= amount:
            tenant.asks = tenant.hopeless_since_ns = 0
            return May.NOW
        if tenant.asks and self._is_hopeless(tenant, amount, facts, free):
            tenant.hopeless_since_ns = tenant.hopeless_since_ns or now
            if now - tenant.hopeless_since_ns > self._pace.late_ns:
                tenant.asks = tenant.hopeless_since_ns = 0
                return May.NEVER
        else:
            tenant.hopeless_since_ns = 0
        tenant.asks, tenant.asked_ns = amount, now
        return May.LATER

    def _is_hopeless(self, tenant: Tenant, amount: int, facts: Mapping[BudgetKey, Fact], free: int) -> bool:
        charged = {key: facts[key].charged + (amount if each is tenant else 0) for key, each in self.tenants.items()}
        stays = {key: charged[key] - each.goes_for_others for key, each in self.tenants.items()}
        stays[tenant.key] -= amount  # counted as movable
        return any(charged[key] + sum(stays.values()) - stays[key] > free for key in self.tenants)

    # ---- Decisions ---------------------------------------------------------------------------------------------------

    @property
    def is_crowded(self) -> bool:
        """A tenant is not entirely on the card, or needs more than there is, so delays matter."""
        return any(not tenant.is_calm for tenant in self.tenants.values())

    def decide(self, facts: Mapping[BudgetKey, Fact], free: int, now: int) -> tuple[Act, ...]:
        """`free` is the card's memory, less all that non-movable containers may hold."""
        self._acts = []
        for key, tenant in self.tenants.items():
            self._look(tenant, facts[key], now)
        self._excess = sum(facts[key].charged for key, each in self.tenants.items() if self._wants(each, now)) - free
        served = list[Tenant]()
        for tenant in self._in_line(now):
            self._serve(tenant, facts, free, now, before=served)
            if tenant.asks or tenant.out:
                break
            served.append(tenant)
        self._tell_shares(now)
        return tuple(self._acts)

    def _look(self, tenant: Tenant, fact: Fact, now: int) -> None:
        tenant.clock += (fact.held_ns - tenant.held_ns) * 1000 // tenant.weight
        tenant.held_ns = fact.held_ns
        if tenant.asks and now - tenant.asked_ns > self._pace.asks_ns:
            tenant.asks = 0
        if fact.wants or tenant.waits() or tenant.asks:
            if not self._wants(tenant, now):
                tenant.clock = max(tenant.clock, self._least_clock(tenant, now))
            tenant.wanted_ns = now
        if tenant.is_suspended and tenant.stand is Residency.IN:
            tenant.stand, tenant.owes = Residency.CLOSING, tenant.resident
        if tenant.stand is Residency.CLOSING and fact.is_at_rest:
            tenant.stand, tenant.waits_since_ns = Residency.OUT, now
            self._release(tenant, tenant.owes, now)
        if tenant.is_suspended and tenant.stand is Residency.OUT:
            # Also processes that seem to hold nothing: their last report may be a second old.
            for process in tenant.parts:
                self._order(tenant, process, 0, now)
        elif tenant.stand is Residency.OUT and tenant.is_back:
            tenant.stand, tenant.came_ns, tenant.is_resumed = Residency.IN, now, False
        if not self._wants(tenant, now):
            tenant.waits_since_ns = now
        self._insist(tenant, now)

    def _insist(self, tenant: Tenant, now: int) -> None:
        """Repeat orders that may have been lost; report a tenant that does not follow one that it received as late."""
        for process, part in tenant.parts.items():
            if part.placed.order != part.order and now - part.ordered_ns > self._pace.again_ns:
                part.ordered_ns = now
                self._acts.append(Order(tenant.key, process, part.allowed, part.order))
            is_asked = not (tenant.is_suspended or tenant.by_driver)
            if part.leaving and now - part.progress_ns > self._pace.late_ns and is_asked:
                self._acts.append(Late(tenant.key, part.leaving))

    def _least_clock(self, tenant: Tenant, now: int) -> int:
        others = [each.clock for each in self.tenants.values() if each is not tenant and self._wants(each, now)]
        return min(others, default=tenant.clock)

    def _wants(self, tenant: Tenant, now: int) -> bool:
        """Now, or a moment ago."""
        return tenant.is_resumed or (not tenant.is_suspended and now - tenant.wanted_ns <= self._pace.idle_ns)

    def _tell_shares(self, now: int) -> None:
        """Divide the shares of all that want the card among resident ones: the sum does not depend on who is out."""
        wanting = [each for each in self.tenants.values() if self._wants(each, now)]
        there = sum(each.weight for each in wanting if each.stand is Residency.IN)
        for tenant in self.tenants.values():
            is_in, share = tenant.stand is Residency.IN, tenant.share
            if is_in and there and self._wants(tenant, now):
                share = min(WHOLE_MILLI, share * sum(each.weight for each in wanting) // there)
            turn = Turn(tenant.key, is_in, share if is_in else tenant.share)
            if self._told.get(tenant.key) != turn:
                self._told[tenant.key] = turn
                self._acts.append(turn)

    # ---- Memory ------------------------------------------------------------------------------------------------------

    def _free(self, facts: Mapping[BudgetKey, Fact], free: int) -> int:
        """Memory that is neither held nor allowed to any tenant."""
        return free - sum(facts[key].charged - tenant.out for key, tenant in self.tenants.items())

    def _in_line(self, now: int) -> list[Tenant]:
        """Tenants that need room, in order: resident ones that ask for more, long-waiting ones, then by clocks."""
        growing = [each for each in self.tenants.values() if each.stand is Residency.IN and each.asks]
        waiting = [each for each in self.tenants.values() if each.stand is Residency.OUT and self._wants(each, now)]
        return [*growing, *sorted(waiting, key=lambda each: (not self._is_overdue(each, now), each.clock))]

    def _is_overdue(self, tenant: Tenant, now: int) -> bool:
        return tenant.by_driver or now - tenant.waits_since_ns >= self._pace.longest_wait_ns

    def _serve(
        self, tenant: Tenant, facts: Mapping[BudgetKey, Fact], free: int, now: int, *, before: Container[Tenant]
    ) -> None:
        """Give it the free memory, and move others out for the rest."""
        if tenant.stand is Residency.OUT:
            left = self._free(facts, free)
            if tenant.by_driver and not any(each.resident for each in self.tenants.values() if not each.by_driver):
                left = max(left, tenant.out)  # it was granted, and no other tenant could make more room
            self._allow(tenant, left, now)
        short = tenant.out + tenant.asks - self._free(facts, free) - self._coming_free()
        if short > 0:
            self._send_out(tenant, short, now, before)

    def _coming_free(self) -> int:
        """Memory that others were ordered to release."""
        return sum(each.owes if each.stand is Residency.CLOSING else each.leaving for each in self.tenants.values())

    def _allow(self, tenant: Tenant, left: int, now: int) -> None:
        """Let it bring in memory, as far as there is room."""
        for process, part in tenant.parts.items():
            if part.out <= left:
                left -= part.out
                self._order(tenant, process, ALL, now)
            elif left >= STEP:
                more = left // STEP * STEP
                left -= more
                self._order(tenant, process, part.whole - part.out + more, now)

    def _order(self, tenant: Tenant, process: ProcessKey, allowed: int, now: int) -> None:
        part = tenant.parts[process]
        if part.allowed == allowed:
            return
        self._orders = (self._orders + 1) & _ORDERS
        part.is_told(allowed, self._orders, now)
        self._acts.append(Order(tenant.key, process, allowed, part.order))

    def _send_out(self, wanter: Tenant, short: int, now: int, before: Container[Tenant]) -> None:
        for tenant in self._leavers(wanter, short, now, before):
            if short <= 0:
                break
            if tenant.stand is Residency.OUT:
                short -= self._release(tenant, short, now)
            else:
                tenant.stand, tenant.owes = Residency.CLOSING, min(short, tenant.resident)
                tenant.times_out += 1
                short -= tenant.owes

    def _release(self, tenant: Tenant, short: int, now: int) -> int:
        """Order it to release this much, if it has that; return the amount ordered."""
        given = 0
        for process, part in tenant.parts.items():
            stays = min(part.allowed, part.whole)
            goes = min(stays, -(-(short - given) // STEP) * STEP)
            if goes > 0:
                self._order(tenant, process, stays - goes, now)
                given += goes
        return given

    def _leavers(self, wanter: Tenant, short: int, now: int, before: Container[Tenant]) -> Iterator[Tenant]:
        """Candidates to move out: tenants that are out anyway, idle ones, then those whose residency is over."""
        movable = [each for each in self.tenants.values() if not each.by_driver]
        others = [each for each in movable if each is not wanter and each not in before]
        behind = [each for each in others if each.stand is Residency.OUT and each.out < each.whole]
        yield from sorted(behind, key=lambda each: (self._wants(each, now), -each.clock))
        there = [each for each in others if each.stand is Residency.IN and each.resident]
        for each in sorted(there, key=lambda each: (self._wants(each, now), -each.clock)):
            if not self._wants(each, now) or self._is_over(each, wanter, short, now):
                yield each

    def _is_over(self, tenant: Tenant, wanter: Tenant, short: int, now: int) -> bool:
        """It has been resident long enough to pay for its move, and is far enough ahead of the waiter.

        The required lead makes residencies last `worth` times as long as a move. The cost is all that moves for the
        waiter, including what has moved already. A waiting tenant is behind by what the others get between two changes;
        the more tenants wait, the more changes each of them sees.
        """
        if wanter.stand is Residency.IN:
            return True  # it grows, and can't continue without
        takes_ns = self._takes_ns(max(short, min(wanter.whole, self._excess)))
        if now - tenant.came_ns < takes_ns:
            return False
        wanting = [each for each in self.tenants.values() if self._wants(each, now)]
        outside = sum(each.stand is not Residency.IN for each in wanting)
        weights = sum(each.weight for each in wanting)
        ahead = self._pace.worth * takes_ns * outside * WHOLE_MILLI // max(1, weights)
        return tenant.clock - wanter.clock >= ahead or self._is_overdue(wanter, now)

    def _takes_ns(self, amount: int) -> int:
        """Estimated time to move this much, from the moves so far."""
        carried = sum(tenant.carried for tenant in self.tenants.values())
        spent = sum(tenant.spent_ns for tenant in self.tenants.values())
        return amount * spent // carried if carried and spent else amount // self._pace.first_rate
