"""State of a node: containers, cards, and the coscheduling domains of cards that are decided on together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from partage_isolation.names import BudgetKey
from partage_isolation.timeslices.card import Card, Group, RunQueueEntry
from partage_isolation.timeslices.durations import NEVER, Timing
from partage_isolation.timeslices.grants import Closing, Granting, Lines
from partage_isolation.timeslices.groups import Groups
from partage_isolation.timeslices.lifecycle import FREE
from partage_isolation.timeslices.meter import Meter
from partage_isolation.timeslices.next_holder import NextHolder
from partage_isolation.timeslices.policies.policy import Policy, Tally
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import Gang


class CoschedulingDomain:
    """A coscheduling domain: usually one card, several where gangs tie them together."""

    __slots__ = ("_closing", "_granting", "_timing", "_turns", "cards", "due")

    def __init__(self, cards: Sequence[Card], lines: Lines, timing: Timing, *, due: int) -> None:
        self.cards, self._timing, self.due = cards, timing, due
        self._closing = Closing(lines, timing)
        self._granting = Granting(self._closing, lines, timing)
        self._turns = NextHolder(cards, self._granting, timing)

    def charge(self, now: int) -> None:
        for card in self.cards:
            card.charge(now)

    def send_out(self, entry: RunQueueEntry, now: int) -> None:
        """End its time slice now, with those of its gang."""
        if entry.is_open:
            self._closing.revoke(entry.group, now)

    def go_on(self, now: int) -> None:
        while True:
            for card in self.cards:
                if card.holder:
                    self._look(card.holder.group, now)
            if not self._turns.decide(now):
                break
        self.due = self._next(now)

    def finish(self, group: Group, now: int) -> None:
        """Close cards whose members all ended the time slice themselves or were idle; a gang's card only when idle."""
        for entry in group.entries:
            if entry.is_open and entry.all_finished() and entry.life is not FREE:
                is_idle = entry.says_idle()
                if is_idle or len(group.entries) == 1:
                    entry.is_quiet = is_idle
                    is_written = is_idle or not entry.has_timeslice or entry.deadline > now
                    self._closing.close(entry, now, is_written=is_written)

    def _look(self, group: Group, now: int) -> None:
        for entry in group.entries:
            if entry.has_timeslice:
                if entry.deadline <= now:
                    self._closing.expire(group, now)
                    break
                if entry.look_at <= now:
                    self._granting.renew(group, now)
                    break
            elif entry.is_open and entry.card.holder is entry:
                self._granting.adjust(group, entry, now)
        self._closing.go_on(group, now)

    def _next(self, now: int) -> int:
        due = self._turns.opens_at
        for card in self.cards:
            holder = card.holder
            if holder and holder.has_timeslice:
                due = min(due, holder.look_at)
            elif holder and holder.is_closing:
                due = min(due, self._closing.look_ns(holder.group))
            if card.patient_until < due:
                due = min(due, card.patience_ends(now))
        return due


Place = tuple[BudgetKey, CardId]
FirstEpoch = Callable[[BudgetKey, CardId], int]


class Node:
    def __init__(self, policy: Callable[[CardId], Policy], timing: Timing, first_epoch: FirstEpoch) -> None:
        self._policy, self._timing, self._first_epoch = policy, timing, first_epoch
        self.lines = Lines()
        self.cards: dict[CardId, Card] = {}
        self.entries: dict[Place, RunQueueEntry] = {}
        self.domains: list[CoschedulingDomain] = []
        self._groups = Groups(timing)
        self._island_of: dict[CardId, CoschedulingDomain] = {}

    def put(self, place: Place, share: int, limit: int, now: int, gang: Gang | None = None) -> None:
        """Set the container's share and limit of the card."""
        known = self.entries.get(place)
        if known:
            known.account.share, known.account.limit = share, limit
            self.domain(place[1]).due = now
        else:
            self._add(place, Tally(share, limit), now, gang)
            self._tie(now)

    def drop(self, key: BudgetKey, now: int) -> None:
        gone = self._groups.drop(key)
        if not gone:
            return
        for entry in gone:
            del self.entries[key, entry.card.id]
            entry.card.forget(entry)
            if not entry.card.entries:
                del self.cards[entry.card.id]
        self.lines.forget(key)
        if (gang := gone[0].group.gang) is not None:
            self._groups.gather(gang)
        self._tie(now)

    def regroup(self, entry: RunQueueEntry, now: int) -> CoschedulingDomain:
        """Regroup its gang after a container came or went; return the domain of its card."""
        gang = entry.group.gang
        if gang is not None and self._groups.gather(gang):
            self._tie(now)
            self.domain(entry.card.id).charge(now)
        return self.domain(entry.card.id)

    def domain(self, card: CardId) -> CoschedulingDomain:
        return self._island_of[card]

    def due(self) -> int | None:
        first = min([domain.due for domain in self.domains], default=NEVER)
        return first if first < NEVER else None

    def _card(self, card: CardId, now: int) -> Card:
        if card not in self.cards:
            self.cards[card] = Card(card, self._policy(card), at=now)
        return self.cards[card]

    def _add(self, place: Place, account: Tally, now: int, gang: Gang | None) -> None:
        key, card = place[0], self._card(place[1], now)
        group = self._groups.place(key, card, gang)
        entry = RunQueueEntry(
            key,
            card,
            account,
            group=group,
            epoch=self._first_epoch(*place),
            drain_ns=self._timing.quantum_ns,
            wanted=Meter(now),
            got=Meter(now),
        )
        group.take_in([entry])
        card.entries.append(entry)
        self.entries[place] = entry

    def _tie(self, now: int) -> None:
        tied = _domains(self._groups, self.cards.values())
        self.domains = [CoschedulingDomain(cards, self.lines, self._timing, due=now) for cards in tied]
        self._island_of = {card.id: domain for domain in self.domains for card in domain.cards}


def _domains(groups: Iterable[Group], cards: Iterable[Card]) -> list[list[Card]]:
    """Partition the cards into domains that must be decided on together, each sorted by card id."""
    parent = {card: card for card in sorted(cards, key=lambda card: card.id)}

    def root(card: Card) -> Card:
        while parent[card] is not card:
            card = parent[card]
        return card

    for group in groups:
        for one, other in zip(group.entries, group.entries[1:], strict=False):
            parent[root(other.card)] = root(one.card)
    by_root: dict[Card, list[Card]] = {}
    for card in parent:
        by_root.setdefault(root(card), []).append(card)
    return list(by_root.values())
