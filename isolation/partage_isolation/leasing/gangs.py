"""Containers as those who ask: for one card, or for several at once as a gang. Pure.

A gang gets all the cards that it needs in one step, or none: nobody ever holds a part and waits for the rest, so no
two can wait for each other. Cards that gangs tie together are decided on together, as one *island*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from partage_isolation.leasing.cards import Card
from partage_isolation.leasing.life import Life
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.timing import Timing
from partage_plugins.vocabulary.names import ContainerKey


@dataclass(slots=True, eq=False)
class Demander:
    """One container."""

    key: ContainerKey
    number: int
    """By age: who came first is first where nothing else decides."""
    timing: Timing
    seats: list[Seat] = field(default_factory=list[Seat])
    """By card id."""
    is_reopened: bool = False
    """This closing has been interrupted once."""

    longest_wait_ns: int = 0
    """After that it is next whatever it owes."""
    torn_turns: int = 0
    """How often it was served before its time because it was torn."""

    def __post_init__(self) -> None:
        self.set_longest_wait()

    def set_longest_wait(self) -> None:
        """Where it is torn it harms others until it runs everywhere: it is served soon, and each time less soon."""
        timing = self.timing
        if self.is_torn():
            self.longest_wait_ns = min(timing.longest_wait_ns, 2 * timing.quantum_ns << min(self.torn_turns, 10))
        else:
            self.longest_wait_ns, self.torn_turns = timing.longest_wait_ns, 0
        for seat in self.seats:
            if seat.is_waiting:
                seat.begins_to_wait(seat.waiting_since)

    def is_torn(self) -> bool:
        """Its work runs on one card without an end, and may wait for what a thread at another's gate would launch."""
        return len(self.seats) > 1 and any(seat.silent and seat.is_behind for seat in self.seats)

    def needs(self) -> tuple[Seat, ...]:
        """The seats that it would be granted together now; none where it wants nothing or is still closing."""
        seats = self.seats
        if len(seats) == 1:
            return (seats[0],) if seats[0].is_waiting else ()
        lives = [seat.life for seat in seats]
        if Life.WAITING not in lives or Life.CLOSING in lives:
            return ()
        return tuple(seat for seat in seats if seat.is_waiting or _would_follow(seat))

    def closing(self) -> list[Seat]:
        """Those that end together."""
        return [seat for seat in self.seats if seat.is_closing]

    def is_drained(self) -> bool:
        """It is closing, and nothing is waited for any more."""
        closing = self.closing()
        return bool(closing) and not any(seat.undrained for seat in closing)

    def open_seats(self) -> list[Seat]:
        """Those whose processes may launch."""
        return [seat for seat in self.seats if seat.is_open and seat.card.policy.is_metering]


def _would_follow(seat: Seat) -> bool:
    """Nobody waits there at this moment, and it was not idle when it last had the card."""
    return seat.has_gone and seat.card.policy.is_metering


def islands(demanders: Iterable[Demander], cards: Iterable[Card]) -> list[list[Card]]:
    """Cards that have to be decided on together; each list by card id."""
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
