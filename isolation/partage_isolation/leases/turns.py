"""Picks which container runs next on a card, or on cards that gangs tie together.

Pure. All that want cards are in one order: by how far each would be behind the others that are due on the card on which
it is furthest ahead. On a single card that is the policy's rank. The first gets all cards that it needs, and time
slices in its way are ended where the policy allows; the others get the remaining cards. So a gang never runs on one
card at the expense of guarantees on another, and the first can't be starved.

This runs at each event of a card, and nearly all cards are tied to no other, so loops over a single entry stay simple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partage_isolation.leases.card import Card, Demander, Seat
from partage_isolation.leases.durations import NEVER, Timing
from partage_isolation.leases.grants import Granting

Entry = tuple[Demander, tuple[Seat, ...]]


class Turns:
    """Picks next for a set of cards that are decided on together."""

    __slots__ = ("_cards", "_granting", "_timing", "opens_at")

    def __init__(self, cards: Sequence[Card], granting: Granting, timing: Timing) -> None:
        self._cards, self._granting, self._timing = cards, granting, timing
        self.opens_at = NEVER
        """When a ceiling lets a container run, or a card is no longer kept for one that had it a moment ago."""

    def decide(self, now: int) -> bool:
        """Grant and end what is due; return whether something ended that may be free immediately."""
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
        """Waiting entries, or an empty list if there is nothing to decide."""
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
        # All cards are held until a deadline: only a new arrival, or an entry that has waited too long, changes that.
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
        """Each card's smallest rank of entries that want or have it; empty for a single card, where ranks suffice."""
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
        """One of their cards is kept for a container that had it a moment ago and still ranks first."""
        for seat in needs:
            until = seat.card.kept_until(seat, now, self._timing.comes_back_ns)
            if until > now and not _waits_long(needs, now):
                self.opens_at = min(self.opens_at, until)
                return True
        return False

    def _passes(self, needs: Sequence[Seat], now: int) -> None:
        """Mark gangs that were first on these cards but could not get all of theirs."""
        for seat in needs:
            policy = seat.card.policy
            for other in seat.card.seats:
                if other.is_waiting and other is not seat and len(other.demander.seats) > 1:
                    other.is_passed |= policy.rank(other.account, now) < policy.rank(seat.account, now)

    def _make_way(self, needs: Sequence[Seat], now: int) -> list[Card]:
        """End what may be ended for these entries; return the cards that are kept for them from now on."""
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
        """A new arrival that is ahead may preempt; so may a gang of which another card changes hands anyway."""
        may_break_in = len(running) < len(needs)
        for seat in needs:
            may_break_in = may_break_in or seat.is_awake
        for seat, holder in running:
            may_break_in = may_break_in and seat.card.policy.may_end(seat.account, holder.account, now)
        return may_break_in or _waits_long(needs, now)

    def _to_keep(self, needs: Sequence[Seat]) -> list[Card]:
        """A gang's cards to keep: those whose work drains slowly, until it has; the others continue meanwhile."""
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
