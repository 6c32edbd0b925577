"""Who is next on a card, and on cards that gangs tie together.

Pure. All that want something stand in one order: by how far the card on which they are furthest ahead would put them
behind those that are due there. On a single card that is the policy's rank. The first gets all that it needs, and what
is in its way ends where that may be; others get what is left. So a gang never runs on one card at the cost of what was
promised on another, and the first can't be passed over.

This runs at each event of a card, and nearly all cards are tied to no other: loops that look at one seat stay plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partage_isolation.leases.card import Card, Demander, Seat
from partage_isolation.leases.durations import NEVER, Timing
from partage_isolation.leases.grants import Granting

Entry = tuple[Demander, tuple[Seat, ...]]


class Turns:
    """Of cards that are decided on together."""

    __slots__ = ("_cards", "_granting", "_timing", "opens_at")

    def __init__(self, cards: Sequence[Card], granting: Granting, timing: Timing) -> None:
        self._cards, self._granting, self._timing = cards, granting, timing
        self.opens_at = NEVER
        """When a ceiling lets a container run, or a card is no longer kept for one that was there a moment ago."""

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
            if holders:
                taken += self._make_way(needs, now)
                for holder in holders:
                    ended = ended or (holder.is_closing and holder.demander.is_drained())
                continue
            taken += [seat.card for seat in needs]
            if not self._is_kept(needs, now):
                if len(self._cards) > 1:
                    self._passes(needs, now)
                self._granting.grant(demander, needs, now)
        for seat in waiting:
            seat.is_awake = False
        return ended

    def _waiting(self, now: int) -> list[Seat]:
        """Seats on which there may be something to decide."""
        are_leased = are_closing = True
        for card in self._cards:
            holder = card.holder
            are_leased = are_leased and holder is not None and holder.is_leased
            are_closing = are_closing and holder is not None and holder.is_closing
        if are_closing:
            return []
        waiting = [seat for card in self._cards for seat in card.seats if seat.is_waiting]
        if not are_leased:
            return waiting
        # Each card's turn is set: only who came since may change that, and who has waited for too long.
        for seat in waiting:
            if seat.is_awake or seat.is_capped or seat.is_overdue(now):
                return waiting
        return []

    def _order(self, waiting: Sequence[Seat], now: int) -> list[Entry]:
        able: list[Entry] = []
        for demander in dict.fromkeys([seat.demander for seat in waiting]):
            needs = demander.needs()
            if needs and self._may_run(needs, now):
                able.append((demander, needs))
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
        """Of all that want a card or have it, where there are any; on a single card ranks alone are an order."""
        if len(self._cards) == 1:
            return {}
        ranks = {
            card: [card.policy.rank(seat.account, now) for seat in card.seats if seat.is_busy and not seat.is_capped]
            for card in self._cards
        }
        return {card: min(found) for card, found in ranks.items() if found}

    def _place(self, needs: Sequence[Seat], least: Mapping[Card, int], now: int) -> int:
        if _waits_long(needs, now):
            return -1
        if len(self._cards) == 1:
            return needs[0].card.policy.rank(needs[0].account, now)
        ranks = [(seat.card, seat.card.policy.rank(seat.account, now)) for seat in needs]
        return max(rank - min(rank, least.get(card, rank)) for card, rank in ranks)

    def _is_kept(self, needs: Sequence[Seat], now: int) -> bool:
        """A container that is still first had one of their cards a moment ago."""
        for seat in needs:
            until = seat.card.kept_until(seat, now, self._timing.comes_back_ns)
            if until > now and not _waits_long(needs, now):
                self.opens_at = min(self.opens_at, until)
                return True
        return False

    def _passes(self, needs: Sequence[Seat], now: int) -> None:
        """Gangs that were first on these cards, and could not have them all."""
        for seat in needs:
            policy = seat.card.policy
            for other in seat.card.seats:
                if other.is_waiting and other is not seat and len(other.demander.seats) > 1:
                    other.is_passed |= policy.rank(other.account, now) < policy.rank(seat.account, now)

    def _make_way(self, needs: Sequence[Seat], now: int) -> list[Card]:
        """Ends what may be ended for their sake; the cards that are kept for them from now on."""
        running = [(seat, seat.card.holder) for seat in needs if seat.card.holder and seat.card.holder.is_open]
        kept = self._to_keep(needs) if self._may_end(needs, running, now) else []
        for seat, holder in running:
            if not holder.is_open:
                continue  # a gang, which has ended together
            if seat.card in kept:
                self._granting.end_by(holder, holder.granted_at + self._timing.min_run_ns, now)
            elif not holder.is_leased:
                self._granting.end_by(holder, now + self._timing.quantum_ns, now)
        return kept

    def _may_end(self, needs: Sequence[Seat], running: Sequence[tuple[Seat, Seat]], now: int) -> bool:
        """One that has just come and is ahead may; so may a gang, where one of its cards changes hands anyway."""
        may_break_in = len(running) < len(needs)
        for seat in needs:
            may_break_in = may_break_in or seat.is_awake
        for seat, holder in running:
            may_break_in = may_break_in and seat.card.policy.may_end(seat.account, holder.account, now)
        return may_break_in or _waits_long(needs, now)

    def _to_keep(self, needs: Sequence[Seat]) -> list[Card]:
        """Of a gang's cards those whose work drains slowly, until it has; the others go on meanwhile."""
        cards = [seat.card for seat in needs]
        if len(cards) == 1:
            return cards
        slow = [seat.card for seat in needs if seat.card.is_slow(seat, self._timing.drain_least_ns)]
        return slow if any(card.holder for card in slow) else cards


def _waits_long(needs: Sequence[Seat], now: int) -> bool:
    for seat in needs:  # noqa: SIM110 - a loop is faster
        if seat.is_overdue(now):
            return True
    return False
