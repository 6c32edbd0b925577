"""Who is next on a card, and on cards that gangs tie together.

Pure. All that want something stand in one order: by how far the card on which they are furthest ahead would put them
behind those that are due there. On a single card that is the policy's rank. The first gets all that it needs, and what
is in its way ends where that may be; others get what is left. So a gang never runs on one card at the cost of what was
promised on another, and the first can't be passed over.

`CardTurns` has the same rules for a card that no gang ties to another. Nearly all cards are such ones, and this runs at
each of their events: it looks at each container once, and takes half the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partage_isolation.leases.durations import NEVER, Timing
from partage_isolation.leases.grants import Granting
from partage_isolation.leases.seat import Card, Demander, Seat

Entry = tuple[Demander, tuple[Seat, ...]]


class Deciding:
    __slots__ = ("_cards", "_granting", "_timing", "opens_at")

    def __init__(self, cards: Sequence[Card], granting: Granting, timing: Timing) -> None:
        self._cards, self._granting, self._timing = cards, granting, timing
        self.opens_at = NEVER
        """When somebody may run whom a ceiling keeps waiting, or who may come back first."""

    def decide(self, now: int) -> bool:
        """Grants and ends what it is time for; whether something ended that may be free at once."""
        self.opens_at = NEVER
        waiting = self._waiting(now)
        if not waiting:
            return False
        ended = False
        taken: list[Card] = []
        for demander, needs in self._order(waiting, now):
            if taken and any(seat.card in taken for seat in needs):
                continue
            holders = [seat.card.holder for seat in needs if seat.card.holder]
            if not holders and self._is_kept(needs, now):
                taken.extend(seat.card for seat in needs)
            elif not holders:
                self._passes(needs, now)
                self._granting.grant(demander, needs, now)
                taken.extend(seat.card for seat in needs)
            else:
                taken.extend(self._make_way(needs, now))
            if holders and not ended:
                ended = any(holder.demander.is_drained() for holder in holders)
        for seat in waiting:
            seat.is_awake = False
        return ended

    def _waiting(self, now: int) -> list[Seat]:
        """Those for whom there may be something to decide."""
        if all(card.holder and card.holder.is_closing for card in self._cards):
            return []
        waiting = [seat for card in self._cards for seat in card.seats if seat.is_waiting]
        if any(card.holder is None or not card.holder.is_leased for card in self._cards):
            return waiting
        # Each card's turn is set: only who came since may change that, and who has waited for too long.
        is_news = any(seat.is_awake or seat.is_capped or seat.is_overdue(now) for seat in waiting)
        return waiting if is_news else []

    def _order(self, waiting: Sequence[Seat], now: int) -> list[Entry]:
        asking = [(demander, demander.needs()) for demander in dict.fromkeys(seat.demander for seat in waiting)]
        able = [entry for entry in asking if entry[1] and self._may_run(entry[1], now)]
        if len(able) > 1:
            least = self._least_ranks(now)
            able.sort(key=lambda entry: (self._place(entry[1], least, now), entry[0].number))
        return able

    def _may_run(self, needs: Sequence[Seat], now: int) -> bool:
        may = True
        for seat in needs:
            at = seat.card.lets_in(seat, now)
            if at > now:
                self.opens_at, may = min(self.opens_at, at), False
        return may

    def _least_ranks(self, now: int) -> dict[Card, int]:
        """Of all who want a card or have it, where there are any."""
        ranks = {
            card: [card.policy.rank(seat.account, now) for seat in card.seats if seat.is_in_order]
            for card in self._cards
        }
        return {card: min(found) for card, found in ranks.items() if found}

    def _place(self, needs: Sequence[Seat], least: Mapping[Card, int], now: int) -> int:
        if self._waits_long(needs, now):
            return -1
        ranks = [(seat.card, seat.card.policy.rank(seat.account, now)) for seat in needs]
        return max(rank - min(rank, least.get(card, rank)) for card, rank in ranks)

    def _waits_long(self, needs: Sequence[Seat], now: int) -> bool:
        return any(seat.is_overdue(now) for seat in needs)

    def _is_kept(self, needs: Sequence[Seat], now: int) -> bool:
        """Somebody who is still first had one of their cards a moment ago."""
        if self._waits_long(needs, now):
            return False
        for seat in needs:
            until = seat.card.kept_until(seat, now, self._timing.comes_back_ns)
            if until > now:
                self.opens_at = min(self.opens_at, until)
                return True
        return False

    def _passes(self, needs: Sequence[Seat], now: int) -> None:
        """Gangs that were first on these cards, and could not have them all."""
        for seat in needs:
            rank = seat.card.policy.rank(seat.account, now)
            for other in seat.card.seats:
                if other.is_waiting and other is not seat and len(other.demander.seats) > 1:
                    other.is_passed |= other.card.policy.rank(other.account, now) < rank

    def _make_way(self, needs: Sequence[Seat], now: int) -> list[Card]:
        """Ends what may be ended for their sake; the cards that are kept for them from now on."""
        running = [(seat, seat.card.holder) for seat in needs if seat.card.holder and seat.card.holder.is_open]
        may_end = self._waits_long(needs, now) or (
            self._may_break_in(needs, len(running)) and all(_is_ahead(seat, holder, now) for seat, holder in running)
        )
        kept = self._first_to_keep(needs) if may_end else []
        for seat, holder in running:
            if not holder.is_open:
                continue  # a gang, which has ended together
            if seat.card in kept:
                self._granting.end_by(holder, holder.granted_at + self._timing.min_run_ns, now)
            elif not holder.is_leased:
                self._granting.end_by(holder, now + self._timing.quantum_ns, now)
        return kept

    def _first_to_keep(self, needs: Sequence[Seat]) -> list[Card]:
        """Of a gang's cards those whose work drains slowly, until it has; the others go on meanwhile."""
        cards = [seat.card for seat in needs]
        slow = [seat.card for seat in needs if seat.card.is_slow(seat, self._timing.drain_least_ns)]
        return slow if len(cards) > 1 and any(card.holder for card in slow) else cards

    def _may_break_in(self, needs: Sequence[Seat], running: int) -> bool:
        """Who has just come may; and a gang, where one of its cards changes hands anyway."""
        return running < len(needs) or any(seat.is_awake for seat in needs)


def _is_ahead(seat: Seat, holder: Seat, now: int) -> bool:
    return seat.card.policy.may_end(seat.account, holder.account, now)


class Turns:
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
