"""One container in the ledger: its cards with their limits, its processes, and what is charged.

Pure. Cards have numbers, by which its processes name them; a number never changes its card while the container lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.charges import NOTHING, Charges
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

    @property
    def has_something(self) -> bool:
        """Of any card."""
        return any(account.total for account in self.accounts.values())

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
    context_in_limit: bool = True
    """Contexts and the like count against the limit."""
    processes: dict[ProcessId, Process] = field(default_factory=dict[ProcessId, Process])
    by_token: dict[bytes, Process] = field(default_factory=dict[bytes, Process])
    pieces: Pieces = field(default_factory=Pieces)
    """What several of them hold, or could."""
    charges: Charges = field(default_factory=Charges)
    """What each of them has."""

    def card_number(self, card: CardId) -> int | None:
        """The number of a card, or None where the container has no such card."""
        return next((number for number, book in enumerate(self.cards) if book.id == card), None)

    def accounts(self, card: int) -> Iterator[tuple[Process, Account]]:
        """All on that card."""
        for process in self.processes.values():
            account = process.accounts.get(card)
            if account is not None:
                yield process, account

    def charged(self, card: int) -> int:
        """What counts against the limit: to all its processes, and for what those who made it have let go of."""
        asked, fixed = self.charges.on(card)
        return asked + self.shared(card) + (fixed if self.context_in_limit else 0)

    def room(self, card: int) -> int:
        """What is left below the limit; negative where a limit was lowered or overhead has risen."""
        return self.cards[card].limit - self.charged(card)

    def fixed(self, card: int) -> int:
        """Of what its processes have, what no program asked for."""
        return self.charges.on(card).fixed

    def shared(self, card: int) -> int:
        """What its maker has let go of and others have open."""
        return self.pieces.left.get(card, 0)

    def living(self) -> list[ProcessId]:
        """Whoever is not dead."""
        return [each.id for each in self.processes.values() if each.state is not State.DEAD]

    # ---- What changes ------------------------------------------------------------------------------------------------

    def put(self, cards: list[CardBook]) -> None:
        """New limits: a card keeps its number and what was counted of it."""
        for before, book in zip(self.cards, cards, strict=False):
            book.refused = before.refused
        self.cards = cards

    def enter(self, process: Process) -> None:
        """It is of the container from now on, with all that it has."""
        self.processes[process.id] = process
        self.by_token[process.token] = process
        for card in process.accounts:
            self.count(process, card)

    def leave(self, process: Process) -> None:
        """It is not any more, and has nothing."""
        self.processes.pop(process.id, None)
        self.by_token.pop(process.token, None)
        for card in process.accounts:
            self.charges.count(process.id, card, NOTHING)

    def has_token(self, process: Process, token: bytes) -> None:
        """It is known by another one from now on."""
        del self.by_token[process.token]
        process.token = token
        self.by_token[token] = process

    def count(self, process: Process, card: int) -> None:
        """What it has of that card changed."""
        account = process.accounts.get(card)
        self.charges.count(process.id, card, account.charge if account else NOTHING)
