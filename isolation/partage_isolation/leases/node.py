"""State of a node: containers, cards, and the coscheduling domains of cards that are decided on together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from partage_isolation.leases.card import Card, Demander, Seat
from partage_isolation.leases.demanders import Demanders
from partage_isolation.leases.durations import NEVER, Timing
from partage_isolation.leases.grants import Closing, Granting, Lines
from partage_isolation.leases.life import FREE
from partage_isolation.leases.meter import Meter
from partage_isolation.leases.policies.policy import Policy, Tally
from partage_isolation.leases.turns import Turns
from partage_isolation.names import BudgetKey
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import Gang


class Island:
    """A coscheduling domain: usually one card, several where gangs tie them together."""

    __slots__ = ("_closing", "_granting", "_timing", "_turns", "cards", "due")

    def __init__(self, cards: Sequence[Card], lines: Lines, timing: Timing, *, due: int) -> None:
        self.cards, self._timing, self.due = cards, timing, due
        self._closing = Closing(lines, timing)
        self._granting = Granting(self._closing, lines, timing)
        self._turns = Turns(cards, self._granting, timing)

    def charge(self, now: int) -> None:
        for card in self.cards:
            card.charge(now)

    def send_out(self, seat: Seat, now: int) -> None:
        """End its time slice now, with those of its gang."""
        if seat.is_open:
            self._closing.revoke(seat.demander, now)

    def go_on(self, now: int) -> None:
        while True:
            for card in self.cards:
                if card.holder:
                    self._look(card.holder.demander, now)
            if not self._turns.decide(now):
                break
        self.due = self._next(now)

    def finish(self, demander: Demander, now: int) -> None:
        """Close cards whose members all ended the time slice themselves or were idle; a gang's card only when idle."""
        for seat in demander.seats:
            if seat.is_open and seat.all_finished() and seat.life is not FREE:
                is_idle = seat.says_idle()
                if is_idle or len(demander.seats) == 1:
                    seat.is_quiet = is_idle
                    is_written = is_idle or not seat.is_leased or seat.deadline > now
                    self._closing.close(seat, now, is_written=is_written)

    def _look(self, demander: Demander, now: int) -> None:
        for seat in demander.seats:
            if seat.is_leased:
                if seat.deadline <= now:
                    self._closing.expire(demander, now)
                    break
                if seat.look_at <= now:
                    self._granting.renew(demander, now)
                    break
            elif seat.is_open and seat.card.holder is seat:
                self._granting.adjust(demander, seat, now)
        self._closing.go_on(demander, now)

    def _next(self, now: int) -> int:
        due = self._turns.opens_at
        for card in self.cards:
            holder = card.holder
            if holder and holder.is_leased:
                due = min(due, holder.look_at)
            elif holder and holder.is_closing:
                due = min(due, self._closing.look_ns(holder.demander))
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
        self.seats: dict[Place, Seat] = {}
        self.islands: list[Island] = []
        self._demanders = Demanders(timing)
        self._island_of: dict[CardId, Island] = {}

    def put(self, place: Place, share: int, limit: int, now: int, gang: Gang | None = None) -> None:
        """Set the container's share and limit of the card."""
        known = self.seats.get(place)
        if known:
            known.account.share, known.account.limit = share, limit
            self.island(place[1]).due = now
        else:
            self._add(place, Tally(share, limit), now, gang)
            self._tie(now)

    def drop(self, key: BudgetKey, now: int) -> None:
        gone = self._demanders.drop(key)
        if not gone:
            return
        for seat in gone:
            del self.seats[key, seat.card.id]
            seat.card.forget(seat)
            if not seat.card.seats:
                del self.cards[seat.card.id]
        self.lines.forget(key)
        if (gang := gone[0].demander.gang) is not None:
            self._demanders.gather(gang)
        self._tie(now)

    def regroup(self, seat: Seat, now: int) -> Island:
        """Regroup its gang after a container came or went; return the domain of its card."""
        gang = seat.demander.gang
        if gang is not None and self._demanders.gather(gang):
            self._tie(now)
            self.island(seat.card.id).charge(now)
        return self.island(seat.card.id)

    def island(self, card: CardId) -> Island:
        return self._island_of[card]

    def due(self) -> int | None:
        first = min([island.due for island in self.islands], default=NEVER)
        return first if first < NEVER else None

    def _card(self, card: CardId, now: int) -> Card:
        if card not in self.cards:
            self.cards[card] = Card(card, self._policy(card), at=now)
        return self.cards[card]

    def _add(self, place: Place, account: Tally, now: int, gang: Gang | None) -> None:
        key, card = place[0], self._card(place[1], now)
        demander = self._demanders.place(key, card, gang)
        seat = Seat(
            key,
            card,
            account,
            demander=demander,
            epoch=self._first_epoch(*place),
            drain_ns=self._timing.quantum_ns,
            wanted=Meter(now),
            got=Meter(now),
        )
        demander.take_in([seat])
        card.seats.append(seat)
        self.seats[place] = seat

    def _tie(self, now: int) -> None:
        tied = _islands(self._demanders, self.cards.values())
        self.islands = [Island(cards, self.lines, self._timing, due=now) for cards in tied]
        self._island_of = {card.id: island for island in self.islands for card in island.cards}


def _islands(demanders: Iterable[Demander], cards: Iterable[Card]) -> list[list[Card]]:
    """Partition the cards into domains that must be decided on together, each sorted by card id."""
    parent = {card: card for card in sorted(cards, key=lambda card: card.id)}

    def root(card: Card) -> Card:
        while parent[card] is not card:
            card = parent[card]
        return card

    for demander in demanders:
        for one, other in zip(demander.seats, demander.seats[1:], strict=False):
            parent[root(other.card)] = root(one.card)
    groups: dict[Card, list[Card]] = {}
    for card in parent:
        groups.setdefault(root(card), []).append(card)
    return list(groups.values())
