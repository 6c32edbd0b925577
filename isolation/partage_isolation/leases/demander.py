"""What is granted together: the seats of a container, or of containers of one gang of pods, each on a card of its own.

Pure. It gets all cards that it needs in one step or none, so no two can wait for each other. Containers of one gang on
the same card can't have it together: they are in different demanders.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from partage_isolation.leases.card import Card
from partage_isolation.leases.durations import Timing
from partage_isolation.leases.life import Life
from partage_isolation.leases.seat import Seat
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.pods import Gang


@dataclass(slots=True, eq=False)
class Demander:
    number: int
    """By age: the oldest is first where nothing else decides."""
    timing: Timing
    gang: Gang | None = None
    """Of pods."""
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
        """A torn gang harms others until it runs on all its cards. It is served soon, and each time less soon."""
        timing = self.timing
        if self.is_torn():
            self.longest_wait_ns = min(timing.longest_wait_ns, timing.quantum_ns << min(self.torn_turns, 10))
        else:
            self.longest_wait_ns, self.torn_turns = timing.longest_wait_ns, 0
        for seat in self.seats:
            if seat.is_waiting:
                seat.begins_to_wait(seat.waiting_since)

    def is_torn(self) -> bool:
        """Its work runs on one card without an end, and may wait for what a thread at another's gate would launch."""
        return len(self.seats) > 1 and any(seat.silent and seat.is_behind for seat in self.seats)

    @property
    def cards(self) -> frozenset[Card]:
        return frozenset(seat.card for seat in self.seats)

    @property
    def keys(self) -> tuple[BudgetKey, ...]:
        """The containers whose seats these are."""
        return tuple(dict.fromkeys(seat.key for seat in self.seats))

    def is_there(self, key: BudgetKey) -> bool:
        """That container has a process on some card."""
        return any(seat.key == key and seat.life is not Life.EMPTY for seat in self.seats)

    def take_in(self, seats: Iterable[Seat]) -> None:
        self.seats = sorted([*self.seats, *seats], key=lambda seat: seat.card.id)
        for seat in self.seats:
            seat.demander = self
        self.set_longest_wait()

    def join(self, other: Demander) -> None:
        """From now on the other's seats are its own; what was used up stays so."""
        self.is_reopened |= other.is_reopened
        self.torn_turns = max(self.torn_turns, other.torn_turns)
        seats, other.seats = other.seats, []
        self.take_in(seats)

    def let_go(self, key: BudgetKey) -> list[Seat]:
        """Of that container it has no seat any more."""
        gone = [seat for seat in self.seats if seat.key == key]
        self.seats = [seat for seat in self.seats if seat.key != key]
        self.set_longest_wait()
        return gone

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
        return [seat for seat in self.seats if seat.is_closing]

    def is_drained(self) -> bool:
        """It is closing, and nothing is waited for any more."""
        closing = self.closing()
        return bool(closing) and not any([seat.undrained for seat in closing])  # noqa: C419 - a list is faster

    def open_seats(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.is_open and seat.card.policy.is_metering]


def _would_follow(seat: Seat) -> bool:
    """No thread waits there at this moment, and it was not idle when it last had the card."""
    return seat.has_gone and seat.card.policy.is_metering
