"""Picks which container runs next on a card, or on cards that gangs tie together.

Pure. All that want cards are in one order: by how far each would be behind the others that are due on the card on which
it is furthest ahead. On a single card that is the policy's rank. The first gets all cards that it needs, and time
slices in its way are ended where the policy allows; the others get the remaining cards. So a gang never runs on one
card at the expense of guarantees on another, and the first can't be starved.

This runs at each event of a card, and nearly all cards are tied to no other, so loops over a single entry stay simple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partage_isolation.timeslices.card import Card, Group, RunQueueEntry
from partage_isolation.timeslices.durations import NEVER, Timing
from partage_isolation.timeslices.grants import Granting

Entry = tuple[Group, tuple[RunQueueEntry, ...]]


class NextHolder:
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
        for group, needs in self._order(waiting, now):
            if taken and any(entry.card in taken for entry in needs):
                continue
            holders = [entry.card.holder for entry in needs if entry.card.holder]
            if holders:
                taken += self._make_way(needs, now)
                for holder in holders:
                    ended = ended or (holder.is_closing and holder.group.is_drained())
                continue
            taken += [entry.card for entry in needs]
            if not self._is_kept(needs, now):
                if len(self._cards) > 1:
                    self._passes(needs, now)
                self._granting.grant(group, needs, now)
        for entry in waiting:
            entry.is_awake = False
        return ended

    def _waiting(self, now: int) -> list[RunQueueEntry]:
        """Waiting entries, or an empty list if there is nothing to decide."""
        have_timeslices = are_closing = True
        for card in self._cards:
            holder = card.holder
            have_timeslices = have_timeslices and holder is not None and holder.has_timeslice
            are_closing = are_closing and holder is not None and holder.is_closing
        if are_closing:
            return []
        waiting = [entry for card in self._cards for entry in card.entries if entry.is_waiting]
        if not have_timeslices:
            return waiting
        # All cards are held until a deadline: only a new arrival, or an entry that has waited too long, changes that.
        for entry in waiting:
            if entry.is_awake or entry.is_capped or entry.is_overdue(now):
                return waiting
        return []

    def _order(self, waiting: Sequence[RunQueueEntry], now: int) -> list[Entry]:
        able: list[Entry] = []
        for group in dict.fromkeys([entry.group for entry in waiting]):
            needs = group.needs()
            if needs and self._may_run(needs, now):
                able.append((group, needs))
        if len(able) > 1:
            least = self._least_ranks(now)
            able.sort(key=lambda entry: (self._place(entry[1], least, now), entry[0].number))
        return able

    def _may_run(self, needs: Sequence[RunQueueEntry], now: int) -> bool:
        may = True
        for entry in needs:
            at = entry.card.lets_in(entry, now)
            if at > now:
                self.opens_at, may = min(self.opens_at, at), False
        return may

    def _least_ranks(self, now: int) -> dict[Card, int]:
        """Each card's smallest rank of entries that want or have it; empty for a single card, where ranks suffice."""
        if len(self._cards) == 1:
            return {}
        ranks = {
            card: [
                card.policy.rank(entry.account, now) for entry in card.entries if entry.is_busy and not entry.is_capped
            ]
            for card in self._cards
        }
        return {card: min(found) for card, found in ranks.items() if found}

    def _place(self, needs: Sequence[RunQueueEntry], least: Mapping[Card, int], now: int) -> int:
        if _waits_long(needs, now):
            return -1
        if len(self._cards) == 1:
            return needs[0].card.policy.rank(needs[0].account, now)
        ranks = [(entry.card, entry.card.policy.rank(entry.account, now)) for entry in needs]
        return max(rank - min(rank, least.get(card, rank)) for card, rank in ranks)

    def _is_kept(self, needs: Sequence[RunQueueEntry], now: int) -> bool:
        """One of their cards is kept for a container that had it a moment ago and still ranks first."""
        for entry in needs:
            until = entry.card.kept_until(entry, now, self._timing.comes_back_ns)
            if until > now and not _waits_long(needs, now):
                self.opens_at = min(self.opens_at, until)
                return True
        return False

    def _passes(self, needs: Sequence[RunQueueEntry], now: int) -> None:
        """Mark gangs that were first on these cards but could not get all of theirs."""
        for entry in needs:
            policy = entry.card.policy
            for other in entry.card.entries:
                if other.is_waiting and other is not entry and len(other.group.entries) > 1:
                    other.is_passed |= policy.rank(other.account, now) < policy.rank(entry.account, now)

    def _make_way(self, needs: Sequence[RunQueueEntry], now: int) -> list[Card]:
        """End what may be ended for these entries; return the cards that are kept for them from now on."""
        running = [(entry, entry.card.holder) for entry in needs if entry.card.holder and entry.card.holder.is_open]
        kept = self._to_keep(needs) if self._may_end(needs, running, now) else []
        for entry, holder in running:
            if not holder.is_open:
                continue  # a gang, which has ended together
            if entry.card in kept:
                self._granting.end_by(holder, holder.granted_at + self._timing.min_run_ns, now)
            elif not holder.has_timeslice:
                self._granting.end_by(holder, now + self._timing.quantum_ns, now)
        return kept

    def _may_end(
        self, needs: Sequence[RunQueueEntry], running: Sequence[tuple[RunQueueEntry, RunQueueEntry]], now: int
    ) -> bool:
        """A new arrival that is ahead may preempt; so may a gang of which another card changes hands anyway."""
        may_break_in = len(running) < len(needs)
        for entry in needs:
            may_break_in = may_break_in or entry.is_awake
        for entry, holder in running:
            may_break_in = may_break_in and entry.card.policy.may_end(entry.account, holder.account, now)
        return may_break_in or _waits_long(needs, now)

    def _to_keep(self, needs: Sequence[RunQueueEntry]) -> list[Card]:
        """A gang's cards to keep: those whose work drains slowly, until it has; the others continue meanwhile."""
        cards = [entry.card for entry in needs]
        if len(cards) == 1:
            return cards
        slow = [entry.card for entry in needs if entry.card.is_slow(entry, self._timing.drain_least_ns)]
        return slow if any(card.holder for card in slow) else cards


def _waits_long(needs: Sequence[RunQueueEntry], now: int) -> bool:
    for entry in needs:  # noqa: SIM110 - a loop is faster
        if entry.is_overdue(now):
            return True
    return False
