"""A card: who has a seat there, who holds it, and who pays for its time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from partage_isolation.leases.durations import NEVER
from partage_isolation.leases.life import Life
from partage_isolation.leases.policies.policy import Policy
from partage_isolation.leases.seat import Seat
from partage_plugins.vocabulary.names import CardId

Running = tuple[Seat, int]
"""A container, and how many of its processes may have work on the card."""


def runners(behind: Sequence[Seat], holder: Seat | None) -> list[Running]:
    """The holder, and those with silent members that are not stopped."""
    found = [(seat, seat.still_running()) for seat in behind if seat is not holder]
    if holder:
        found.append((holder, max(1, holder.running())))
    return [each for each in found if each[1]]


def divided(amount: int, among: Sequence[Running]) -> list[tuple[Seat, int]]:
    whole = sum(processes for _, processes in among)
    parts: list[tuple[Seat, int]] = []
    before = 0
    for seat, processes in among:
        after = before + processes
        parts.append((seat, amount * after // whole - amount * before // whole))
        before = after
    return parts


@dataclass(slots=True, eq=False)
class Card:
    id: CardId
    policy: Policy
    at: int = 0
    """Until when its time is charged."""
    patient_until: int = NEVER
    """No container has waited here for too long before that; it may be later."""
    seats: list[Seat] = field(default_factory=list[Seat])
    holder: Seat | None = None
    behind: list[Seat] = field(default_factory=list[Seat])
    """Those with silent members."""
    clocks: list[int] = field(default_factory=lambda: [0, 0])
    """How far virtual time has come, for those without a share and with one; it never goes back."""
    charged: int = 0
    """All that was ever charged."""
    busy: int = 0
    """Time that was charged to any container."""

    def charge(self, now: int) -> None:
        """Time until now: to the holder, or to all whose work may run, by their processes."""
        since, self.at = now - self.at, now
        if since <= 0:
            return
        if not self.behind:
            if self.holder:
                self.busy += since
                self._pay(self.holder, since, now)
        elif parts := divided(since, runners(self.behind, self.holder)):
            self.busy += since
            for seat, part in parts:
                self._pay(seat, part, now)

    def _pay(self, seat: Seat, amount: int, now: int) -> None:
        self.policy.charge(seat.account, amount, now)
        seat.charged += amount
        self.charged += amount
        if seat is not self.holder:
            seat.overlap_paid += amount

    def refund(self, seat: Seat, amount: int, now: int) -> None:
        """It turned out that its work had ended long before it said so; it gets ahead of no other by that."""
        had = seat.account.virtual
        self.policy.charge(seat.account, -amount, now)
        seat.account.virtual = max(seat.account.virtual, min(had, self.clocks[seat.account.share > 0]))

    def lets_in(self, seat: Seat, now: int) -> int:
        """When its ceiling lets it run; where that is not after now, it is among the others again."""
        at = NEVER if seat.is_out else self.policy.opens_at(seat.account, now)
        if at > now:
            seat.is_capped = True
        elif seat.is_capped or seat.is_passed:
            seat.is_awake |= seat.is_capped
            seat.is_capped = seat.is_passed = False
            self.came(seat)
        return at

    def is_contended(self, seat: Seat, since: int) -> bool:
        """Another container waits for it and could have it, or had it after that time and was not idle then."""
        for other in self.seats:
            if other is not seat:
                if other.is_waiting:
                    if not other.is_capped:
                        return True
                elif other.rested_at > since and other.has_gone:
                    return True
        return False

    def kept_until(self, seat: Seat, now: int, keep_ns: int) -> int:
        """Until when the card is kept for a container before it, which had the card a moment ago and was not idle."""
        gone = [other for other in self.seats if other.rested_at + keep_ns > now and other.has_gone]
        if not gone or not self.policy.renews:
            return 0
        rank = self.policy.rank(seat.account, now)
        first = [other.rested_at for other in gone if self.policy.rank(other.account, now) < rank]
        return max(first) + keep_ns if first else 0

    def came(self, seat: Seat) -> None:
        """It is back: it is ahead of the others by a credit at most, or by what they owed it when it left."""
        self.policy.came(seat.account, self._keep_time(seat, self._others(seat)))

    def goes(self, seat: Seat, *, is_back: bool) -> None:
        """It gives the card up. Unless it is back at once, it keeps what others owe it now."""
        virtual, others = seat.account.virtual, self._others(seat)
        self._keep_time(seat, [*others, virtual])
        if not is_back:
            seat.account.lead = max(0, min(others, default=virtual) - virtual)

    def _others(self, seat: Seat) -> list[int]:
        """Clocks of others of its kind, with a share or without, that want the card or have it."""
        has_share = seat.account.share > 0
        return [
            other.account.virtual
            for other in self.seats
            if other.is_busy and other is not seat and not other.is_capped and (other.account.share > 0) == has_share
        ]

    def _keep_time(self, seat: Seat, clocks: Sequence[int]) -> int:
        """How far virtual time has come: to the clock that is furthest behind."""
        kind = seat.account.share > 0
        self.clocks[kind] = max(self.clocks[kind], min(clocks, default=0))
        return self.clocks[kind]

    def patience_ends(self, now: int) -> int:
        ends = [seat.overdue_at for seat in self.seats if seat.is_waiting]
        self.patient_until = min(ends, default=NEVER)
        return min((at for at in ends if at > now), default=NEVER)

    def is_slow(self, seat: Seat, drain_ns: int) -> bool:
        """Work of others who are busy here takes longer than that to drain."""
        return any(other is not seat and other.is_busy and other.drain_ns > drain_ns for other in self.seats)

    def is_alone(self, seat: Seat) -> bool:
        return all(other is seat or other.life is Life.EMPTY for other in self.seats)

    def forget(self, seat: Seat) -> None:
        self.seats.remove(seat)
        if self.holder is seat:
            self.holder = None
        if seat in self.behind:
            self.behind.remove(seat)
