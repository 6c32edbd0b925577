"""One container in the ledger: its cards with their limits, its processes, and what is charged.

Pure. Cards have numbers, by which its processes name them; a number never changes its card while the container lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.pieces import Pieces, ProcessId
from partage_isolation.broker.states import Event, State, after
from partage_plugins.vocabulary.names import CardId, ContainerKey


@dataclass(slots=True, eq=False, weakref_slot=True)
class Process:
    """One process of a container."""

    key: ContainerKey
    pid: int
    start: int
    token: bytes
    state: State = State.LIVE
    accounts: dict[int, Account] = field(default_factory=dict[int, Account])
    is_silent: bool = False
    """It did not answer a hint in time: nobody waits for it until it says something."""
    is_waiting: bool = False
    """A question of its own is parked: it can't give anything back before that is answered."""
    died_ns: int = 0

    @property
    def id(self) -> ProcessId:
        """What no other process has."""
        return self.pid, self.start

    def on(self, card: int) -> Account:
        """Its account on that card, made where there is none."""
        account = self.accounts.get(card)
        if account is None:
            account = self.accounts[card] = Account()
        return account

    def happens(self, event: Event) -> None:
        """See `states`."""
        self.state = after(self.state, event)


@dataclass(slots=True)
class CardBook:
    """One card of a container."""

    id: CardId
    granted: int
    share: int
    limit_milli: int
    lowered: int | None = None
    """By root on the node, until the container ends."""
    most: int = 0
    """The highest grant that it ever had."""
    refused: int = 0

    @property
    def limit(self) -> int:
        """Bytes, in force."""
        return self.granted if self.lowered is None else min(self.granted, self.lowered)


@dataclass(slots=True, eq=False)
class Container:
    """One container."""

    key: ContainerKey
    cards: list[CardBook]
    processes: dict[ProcessId, Process] = field(default_factory=dict[ProcessId, Process])
    by_token: dict[bytes, Process] = field(default_factory=dict[bytes, Process])
    pieces: Pieces = field(default_factory=Pieces)
    """What several of them hold, or could."""

    def card_number(self, card: CardId) -> int | None:
        """The number of a card, or None where the container has no such card."""
        return next((number for number, book in enumerate(self.cards) if book.id == card), None)

    def accounts(self, card: int) -> Iterator[tuple[Process, Account]]:
        """All on that card."""
        for process in self.processes.values():
            account = process.accounts.get(card)
            if account is not None:
                yield process, account

    def charged(self, card: int, *, with_fixed: bool) -> int:
        """To all its processes on that card, and for what those who made it have let go of."""
        total = self.shared(card)
        for process in self.processes.values():
            account = process.accounts.get(card)
            if account is not None:
                total += account.lent + account.unproved
                if with_fixed:
                    total += account.overhead + account.reserved
        return total

    def fixed(self, card: int) -> int:
        """Of it, what no program asked for."""
        return sum(account.fixed for _, account in self.accounts(card))

    def shared(self, card: int) -> int:
        """Of it, what its maker has let go of and others have open."""
        return self.pieces.left.get(card, 0)

    def living(self) -> list[ProcessId]:
        """Whoever is not dead."""
        return [each.id for each in self.processes.values() if each.state is not State.DEAD]
