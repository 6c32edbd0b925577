"""The room of one card, and who of its tenants has their memory there.

Pure. What is on the card, or was allowed to come, and what those hold that never move, is never more than the card has.
A tenant is whole on the card or has no turns. Whoever is out and wants the card is next by how little of it they had
for their share; who is in stays for as long as makes what is moved worth it, and goes at once when idle. Where there is
room the next one's memory comes while another computes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.moving.tenant import ALL, STEP, Part, Placed, ProcessKey, Stand, Tenant
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.limits import WHOLE_MILLI

_ORDERS: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Pace:
    worth: int = 9
    """A turn lasts so many times as long as what moves for it."""
    longest_wait_ns: int = 30 * SECOND
    """Who has waited for so long is next, whatever that costs."""
    idle_ns: int = 50 * MS
    """Who has not wanted the card for so long may be sent out for another."""
    again_ns: int = 50 * MS
    """An order of which nothing was heard for so long is said again."""
    asks_ns: int = 200 * MS
    """Who asks for more room says so again within that."""
    late_ns: int = 2 * SECOND
    """Who was told to leave, and has not moved anything for so long, is late."""
    first_rate: int = 8
    """Bytes in a nanosecond that move, until it is known."""


class Fact(NamedTuple):
    """What is known of a tenant beside its memory that moves."""

    charged: int
    """All that counts as its own on the card, wherever it lies."""
    wants: bool
    """It has the card, or waits for it."""
    held_ns: int
    """How long it had the card, in all."""
    is_at_rest: bool
    """It has no turn, and none whose end is waited for."""


class Order(NamedTuple):
    """To a process: so much of its memory may be on the card."""

    key: BudgetKey
    process: ProcessKey
    allowed: int
    number: int


class Turn(NamedTuple):
    """To the arbiter: whether a tenant has turns, and as if it had what share."""

    key: BudgetKey
    is_in: bool
    share: int


class Late(NamedTuple):
    """It was told to leave and does not."""

    key: BudgetKey
    held: int
    """Bytes that others wait for."""


Act = Order | Turn | Late


class May(Enum):
    NOW = "now"
    LATER = "later"
    NEVER = "never"


class Room:
    """Of one card, with all tenants that it has."""

    def __init__(self, pace: Pace = Pace(), *, first_order: int = 1) -> None:
        self.tenants: dict[BudgetKey, Tenant] = {}
        self._pace, self._orders = pace, first_order
        self._acts: list[Act] = []
        self._told: dict[BudgetKey, Turn] = {}
        self._excess = 0
        """Of what those have who want the card, so much does not fit at once."""

    # ---- What happens ------------------------------------------------------------------------------------------------

    def put(self, key: BudgetKey, share: int, *, suspended: bool = False, by_driver: bool = False) -> Tenant:
        """It is here; said again, that is its share from now on, and whether it is suspended."""
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
            # Where an earlier broker sent it out it stays as it is until it is its turn.
            allowed = said.resident if said.moved else ALL
            part = tenant.parts[process] = Part(said, allowed=allowed, order=said.order, most=allowed)
            if said.moved:
                tenant.stand, tenant.waits_since_ns = Stand.OUT, now
        tenant.carried += abs(said.moved - part.placed.moved)
        part.says(said, now)

    def gone(self, key: BudgetKey, process: ProcessKey) -> None:
        """What it had on the card is charged to its container until the card shows it no more."""
        tenant = self.tenants.get(key)
        part = tenant.parts.pop(process, None) if tenant else None
        if tenant and part:
            tenant.spent_before_ns += part.placed.spent_ns

    def may_take(self, key: BudgetKey, amount: int, facts: Mapping[BudgetKey, Fact], free: int, now: int) -> May:
        """Whether it may take so much more of the card now. Where it must wait room is made for it, and it asks again.

        Never where it then could not be on the card together with what others have there that can't move, or one of
        them not with it: nobody is to wait for what can't come. What others have is known a moment late.
        """
        tenant = self.tenants[key]
        if tenant.is_suspended:
            return May.LATER
        if tenant.stand is Stand.IN and self._free(facts, free) >= amount:
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
        stays[tenant.key] -= amount  # taken as what can move
        return any(charged[key] + sum(stays.values()) - stays[key] > free for key in self.tenants)

    # ---- What is to be done ------------------------------------------------------------------------------------------

    @property
    def is_crowded(self) -> bool:
        """Somebody is not whole on the card, or asks for more of it than there is: time matters."""
        return any(not tenant.is_calm for tenant in self.tenants.values())

    def decide(self, facts: Mapping[BudgetKey, Fact], free: int, now: int) -> tuple[Act, ...]:
        """`free`: of the card, less all that those may hold who never move."""
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
        if tenant.is_suspended and tenant.stand is Stand.IN:
            tenant.stand, tenant.owes = Stand.CLOSING, tenant.resident
        if tenant.stand is Stand.CLOSING and fact.is_at_rest:
            tenant.stand, tenant.waits_since_ns = Stand.OUT, now
            self._release(tenant, tenant.owes, now)
        if tenant.is_suspended and tenant.stand is Stand.OUT:
            self._release(tenant, tenant.resident - tenant.leaving, now)
        elif tenant.stand is Stand.OUT and tenant.is_back:
            tenant.stand, tenant.came_ns, tenant.is_resumed = Stand.IN, now, False
        if not self._wants(tenant, now):
            tenant.waits_since_ns = now
        self._insist(tenant, now)

    def _insist(self, tenant: Tenant, now: int) -> None:
        """An order may have been lost; who does not follow one that was heard is late."""
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
        """Who is in has the turns of all that want some: what they get together does not depend on who is out."""
        wanting = [each for each in self.tenants.values() if self._wants(each, now)]
        there = sum(each.weight for each in wanting if each.stand is Stand.IN)
        for tenant in self.tenants.values():
            is_in, share = tenant.stand is Stand.IN, tenant.share
            if is_in and there and self._wants(tenant, now):
                share = min(WHOLE_MILLI, share * sum(each.weight for each in wanting) // there)
            turn = Turn(tenant.key, is_in, share if is_in else tenant.share)
            if self._told.get(tenant.key) != turn:
                self._told[tenant.key] = turn
                self._acts.append(turn)

    # ---- Room --------------------------------------------------------------------------------------------------------

    def _free(self, facts: Mapping[BudgetKey, Fact], free: int) -> int:
        """What nobody holds or was allowed to bring."""
        return free - sum(facts[key].charged - tenant.out for key, tenant in self.tenants.items())

    def _in_line(self, now: int) -> list[Tenant]:
        """Those that need room and would use it: who is in and asks for more, who has waited for long, by clocks."""
        growing = [each for each in self.tenants.values() if each.stand is Stand.IN and each.asks]
        waiting = [each for each in self.tenants.values() if each.stand is Stand.OUT and self._wants(each, now)]
        return [*growing, *sorted(waiting, key=lambda each: (not self._is_overdue(each, now), each.clock))]

    def _is_overdue(self, tenant: Tenant, now: int) -> bool:
        return tenant.by_driver or now - tenant.waits_since_ns >= self._pace.longest_wait_ns

    def _serve(
        self, tenant: Tenant, facts: Mapping[BudgetKey, Fact], free: int, now: int, *, before: Container[Tenant]
    ) -> None:
        """Gives it what is free, and sends others out for the rest."""
        if tenant.stand is Stand.OUT:
            left = self._free(facts, free)
            if tenant.by_driver and not any(each.resident for each in self.tenants.values() if not each.by_driver):
                left = max(left, tenant.out)  # it was promised, and nobody is there who could make more room
            self._allow(tenant, left, now)
        short = tenant.out + tenant.asks - self._free(facts, free) - self._coming_free()
        if short > 0:
            self._send_out(tenant, short, now, before)

    def _coming_free(self) -> int:
        """What others were told to let go of."""
        return sum(each.owes if each.stand is Stand.CLOSING else each.leaving for each in self.tenants.values())

    def _allow(self, tenant: Tenant, left: int, now: int) -> None:
        """Of what is free it may bring so much."""
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
            if tenant.stand is Stand.OUT:
                short -= self._release(tenant, short, now)
            else:
                tenant.stand, tenant.owes = Stand.CLOSING, min(short, tenant.resident)
                tenant.times_out += 1
                short -= tenant.owes

    def _release(self, tenant: Tenant, short: int, now: int) -> int:
        """It is to let go of so much, if it has that; how much it will."""
        given = 0
        for process, part in tenant.parts.items():
            stays = min(part.allowed, part.whole)
            goes = min(stays, -(-(short - given) // STEP) * STEP)
            if goes > 0:
                self._order(tenant, process, stays - goes, now)
                given += goes
        return given

    def _leavers(self, wanter: Tenant, short: int, now: int, before: Container[Tenant]) -> Iterator[Tenant]:
        """Who may be sent out for it: those that are out anyway, the idle, then those whose turn is over."""
        movable = [each for each in self.tenants.values() if not each.by_driver]
        others = [each for each in movable if each is not wanter and each not in before]
        behind = [each for each in others if each.stand is Stand.OUT and each.out < each.whole]
        yield from sorted(behind, key=lambda each: (self._wants(each, now), -each.clock))
        there = [each for each in others if each.stand is Stand.IN and each.resident]
        for each in sorted(there, key=lambda each: (self._wants(each, now), -each.clock)):
            if not self._wants(each, now) or self._is_over(each, wanter, short, now):
                yield each

    def _is_over(self, tenant: Tenant, wanter: Tenant, short: int, now: int) -> bool:
        """Its turn has been worth what moves, and it is ahead of who waits by so much that turns last as long.

        What moves for one in all, whatever of it is there already. Who waits while others have their turns is behind by
        what those get in the time between two changes; the more wait, the more changes each of them sees.
        """
        if wanter.stand is Stand.IN:
            return True  # it grows, and can't go on without
        takes_ns = self._takes_ns(max(short, min(wanter.whole, self._excess)))
        if now - tenant.came_ns < takes_ns:
            return False
        wanting = [each for each in self.tenants.values() if self._wants(each, now)]
        outside = sum(each.stand is not Stand.IN for each in wanting)
        weights = sum(each.weight for each in wanting)
        ahead = self._pace.worth * takes_ns * outside * WHOLE_MILLI // max(1, weights)
        return tenant.clock - wanter.clock >= ahead or self._is_overdue(wanter, now)

    def _takes_ns(self, amount: int) -> int:
        """To move so much, by what moves have taken so far."""
        carried = sum(tenant.carried for tenant in self.tenants.values())
        spent = sum(tenant.spent_ns for tenant in self.tenants.values())
        return amount * spent // carried if carried and spent else amount // self._pace.first_rate
