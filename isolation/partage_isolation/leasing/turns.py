"""Who is next on a card that no gang ties to another. Pure.

The rules are those of `deciding`, and what comes out is the same. Nearly all cards are such ones, and this is done at
each event of theirs: it looks at each container once.
"""

from __future__ import annotations

from partage_isolation.leasing.cards import Card
from partage_isolation.leasing.granting import Granting
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.timing import NEVER, Timing


class Turns:
    """Of one card."""

    __slots__ = ("_card", "_granting", "_timing", "opens_at")

    def __init__(self, card: Card, granting: Granting, timing: Timing) -> None:
        self._card, self._granting, self._timing = card, granting, timing
        self.opens_at = NEVER
        """When somebody may run whom a ceiling keeps waiting, or who may come back first."""

    def decide(self, now: int) -> bool:
        """Grants and ends what it is time for; whether something ended that may be free at once."""
        self.opens_at = NEVER
        holder = self._card.holder
        if holder is None:
            self._give(now)
            return False
        return not holder.is_closing and self._make_way(holder, now)

    def _give(self, now: int) -> None:
        """To the first, unless somebody before it is expected back."""
        first, least = None, 0
        for seat in self._card.seats:
            if seat.is_waiting:
                if self._may_run(seat, now):
                    place = self._place(seat, now)
                    if first is None or place < least:
                        first, least = seat, place
                seat.is_awake = False
        if first is not None and (least < 0 or not self._is_kept(first, now)):
            self._granting.grant(first.demander, (first,), now)

    def _make_way(self, holder: Seat, now: int) -> bool:
        asking = self._asking(holder, now)
        if len(asking) > 1:
            asking.sort(key=lambda seat: self._place(seat, now))
        for seat in asking:
            may_end = seat.is_overdue(now) or (
                seat.is_awake and self._card.policy.may_end(seat.account, holder.account, now)
            )
            if may_end:
                self._granting.end_by(holder, holder.granted_at + self._timing.min_run_ns, now)
                break
            if not holder.is_leased:
                self._granting.end_by(holder, now + self._timing.quantum_ns, now)
        for seat in asking:
            seat.is_awake = False
        return holder.is_closing and holder.demander.is_drained()

    def _asking(self, holder: Seat, now: int) -> list[Seat]:
        """Once the turn is set only who came since may change that, and who has waited for too long."""
        waiting = [seat for seat in self._card.seats if seat.is_waiting]
        if holder.is_leased and not any(
            [seat.is_awake or seat.is_capped or seat.is_overdue(now) for seat in waiting]  # noqa: C419 - is faster
        ):
            return []
        return [seat for seat in waiting if self._may_run(seat, now)]

    def _may_run(self, seat: Seat, now: int) -> bool:
        at = self._card.lets_in(seat, now)
        if at > now:
            self.opens_at = min(self.opens_at, at)
            seat.is_awake = False
        return at <= now

    def _place(self, seat: Seat, now: int) -> int:
        return -1 if seat.is_overdue(now) else self._card.policy.rank(seat.account, now)

    def _is_kept(self, seat: Seat, now: int) -> bool:
        """For somebody who is still before it, and had the card a moment ago."""
        until = self._card.kept_until(seat, now, self._timing.comes_back_ns)
        if until > now:
            self.opens_at = min(self.opens_at, until)
        return until > now
