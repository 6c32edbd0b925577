"""What there is on a node: containers, cards, and which of them have to be decided on together. Pure."""

from __future__ import annotations

from collections.abc import Callable

from partage_isolation.leasing.cards import Card
from partage_isolation.leasing.gangs import Demander, islands
from partage_isolation.leasing.islands import Island
from partage_isolation.leasing.lines import Lines
from partage_isolation.leasing.meters import Meter
from partage_isolation.leasing.policies.accounts import Account
from partage_isolation.leasing.policies.policy import Policy
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.timing import NEVER, Timing
from partage_plugins.vocabulary.names import CardId, ContainerKey

Place = tuple[ContainerKey, CardId]
FirstEpoch = Callable[[ContainerKey, CardId], int]


class Node:
    """See the module."""

    def __init__(self, policy: Callable[[CardId], Policy], timing: Timing, first_epoch: FirstEpoch) -> None:
        self._policy, self._timing, self._first_epoch = policy, timing, first_epoch
        self.lines = Lines()
        self.cards: dict[CardId, Card] = {}
        self.seats: dict[Place, Seat] = {}
        self.islands: list[Island] = []
        self._demanders: dict[ContainerKey, Demander] = {}
        self._island_of: dict[CardId, Island] = {}
        self._came = 0

    def put(self, place: Place, share: int, limit: int, now: int) -> None:
        """So much of that card is that container's from now on."""
        known = self.seats.get(place)
        if known:
            known.account.share, known.account.limit = share, limit
            self.island(place[1]).due = now
        else:
            self._add(place, Account(share, limit), now)
            self._tie(now)

    def drop(self, key: ContainerKey, now: int) -> None:
        """It has ended."""
        demander = self._demanders.pop(key, None)
        if demander is None:
            return
        for seat in demander.seats:
            del self.seats[key, seat.card_id]
            seat.card.forget(seat)
            if not seat.card.seats:
                del self.cards[seat.card_id]
        self.lines.forget(key)
        self._tie(now)

    def island(self, card: CardId) -> Island:
        """That has this card."""
        return self._island_of[card]

    def due(self) -> int | None:
        """When the first of them is."""
        first = NEVER
        for island in self.islands:
            if island.due is not None and island.due < first:
                first = island.due
        return first if first < NEVER else None

    def _card(self, card: CardId, now: int) -> Card:
        if card not in self.cards:
            self.cards[card] = Card(card, self._policy(card), at=now)
        return self.cards[card]

    def _add(self, place: Place, account: Account, now: int) -> None:
        key, card = place[0], self._card(place[1], now)
        self._came += 1
        demander = self._demanders.setdefault(key, Demander(key, self._came, self._timing))
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
        demander.seats = sorted([*demander.seats, seat], key=lambda each: each.card_id)
        card.seats.append(seat)
        self.seats[place] = seat
        self.lines.first(seat)

    def _tie(self, now: int) -> None:
        tied = islands(self._demanders.values(), self.cards.values())
        self.islands = [Island(cards, self.lines, self._timing, due=now) for cards in tied]
        self._island_of = {card.id: island for island in self.islands for card in island.cards}
