"""What a container may have, or several of a pod together: cards with their limits, processes, and what is charged.

Pure. A container that shares with no other has a budget of its own, so there is one kind of account. Cards have
numbers, by which processes name them; a number keeps its card while the budget lives. The table of `Event`s alone says
what a process is: an event that is not in the table changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from msgspec import Struct

from partage_isolation.ledger.account import NOTHING, Account, Charges
from partage_isolation.ledger.pieces import Pieces, ProcessId
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId, CardIdText, ContainerKey


class State(IntEnum):
    """What a process is. The numbers are written to files."""

    LIVE = 1
    """Connected."""
    DETACHED = 2
    """Its connection is gone and it lives: still charged."""
    UNCONFIRMED = 3
    """Known from before the broker was started, and not yet heard of."""
    FOUND = 4
    """Never said anything; a card shows it, and it is of the container."""
    DEAD = 5
    """Gone; charged until the card shows no more of it."""
    GONE = 6
    """Forgotten."""


class Event(IntEnum):
    HUNG_UP = 1
    RESUMED = 2
    """It came with the token that it was given."""
    BEGAN_ANEW = 3
    """It came without one: it has executed another program."""
    RESTARTED = 4
    """The broker was."""
    DIED = 5
    ABSENT = 6
    """No card shows it any more."""


_ALIVE: Final = (State.LIVE, State.DETACHED, State.UNCONFIRMED, State.FOUND)

SPEAKING: Final = (State.LIVE, State.DETACHED, State.UNCONFIRMED)
"""Alive, and known to speak for themselves."""

TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.LIVE, Event.HUNG_UP): State.DETACHED,
    (State.LIVE, Event.RESTARTED): State.UNCONFIRMED,
    (State.DETACHED, Event.RESTARTED): State.UNCONFIRMED,
    # A connection that breaks may be noticed after the next one is there.
    (State.LIVE, Event.RESUMED): State.LIVE,
    (State.DETACHED, Event.RESUMED): State.LIVE,
    (State.UNCONFIRMED, Event.RESUMED): State.LIVE,
    **{(state, Event.BEGAN_ANEW): State.LIVE for state in _ALIVE},
    **{(state, Event.DIED): State.DEAD for state in _ALIVE},
    (State.FOUND, Event.ABSENT): State.GONE,
    (State.DEAD, Event.ABSENT): State.GONE,
}


def after(state: State, event: Event) -> State:
    """What a process is after that; the same where the event says nothing to it."""
    return TRANSITIONS.get((state, event), state)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Process:
    key: ContainerKey
    pid: int
    start: int
    token: bytes
    state: State = State.LIVE
    accounts: dict[int, Account] = field(default_factory=dict[int, Account])
    is_silent: bool = False
    """It did not answer a hint in time: it is not waited for until it says something."""
    is_prompt: bool = False
    """It gives back also while a question of its own is parked, and says which recall that answers."""
    died_ns: int = 0
    since: int = 0
    """The moment at which it came; 0: before there were moments."""

    @property
    def id(self) -> ProcessId:
        return self.pid, self.start

    @property
    def has_something(self) -> bool:
        return any(account.total for account in self.accounts.values())

    def on(self, card: int) -> Account:
        """Its account on that card, made where there is none."""
        account = self.accounts.get(card)
        if account is None:
            account = self.accounts[card] = Account()
        return account

    def happens(self, event: Event) -> None:
        self.state = after(self.state, event)


class CardSpec(Struct, frozen=True, kw_only=True):
    """What was granted of one card, and what root has lowered since; bytes and milli. It is written to files."""

    id: CardIdText
    memory: int
    share: int
    limit: int
    lowered: int | None = None
    """Memory, by root on the node."""
    most: int = 0
    """Memory: the highest grant before this one."""
    lowered_share: int | None = None
    lowered_limit: int | None = None
    movable: bool = False
    """Its memory leaves the card when it is the turn of others."""

    @property
    def memory_in_force(self) -> int:
        return self.memory if self.lowered is None else min(self.memory, self.lowered)

    @property
    def most_memory(self) -> int:
        """The highest grant that there ever was."""
        return max(self.most, self.memory)

    @property
    def limit_in_force(self) -> int:
        return self.limit if self.lowered_limit is None else min(self.limit, self.lowered_limit)

    @property
    def share_in_force(self) -> int:
        """What of its time is guaranteed, never above the ceiling."""
        share = self.share if self.lowered_share is None else min(self.share, self.lowered_share)
        return min(share, self.limit_in_force)


@dataclass(slots=True, eq=False)
class Budget:
    key: BudgetKey
    cards: tuple[CardSpec, ...]
    context_in_limit: bool = True
    """Contexts and the like count against the limit."""
    containers: set[ContainerKey] = field(default_factory=set[ContainerKey])
    """Those that use it."""
    processes: dict[ProcessId, Process] = field(default_factory=dict[ProcessId, Process])
    by_token: dict[bytes, Process] = field(default_factory=dict[bytes, Process])
    pieces: Pieces = field(default_factory=Pieces)
    """What several of them hold, or could."""
    charges: Charges = field(default_factory=Charges)
    """What each of them has."""
    waiting: dict[Process, int] = field(default_factory=dict[Process, int])
    """Those with a question that is parked, and of which card."""
    is_away: bool = False
    """The driver has its processes on the host, or is about to, or to bring them back: samples show nothing of them."""
    refused: Counter[int] = field(default_factory=Counter[int])
    """By card: how often more was asked for than its limit allows."""

    def card_number(self, card: CardId) -> int | None:
        return next((number for number, each in enumerate(self.cards) if each.id == card), None)

    def accounts(self, card: int) -> Iterator[tuple[Process, Account]]:
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
        return self.cards[card].memory_in_force - self.charged(card)

    def is_short(self, card: int) -> bool:
        """Somebody waits for room there."""
        return card in self.waiting.values()

    def fixed(self, card: int) -> int:
        """Of what its processes have, what no program asked for."""
        return self.charges.on(card).fixed

    def shared(self, card: int) -> int:
        """What its maker has let go of and others have open."""
        return self.pieces.left.get(card, 0)

    def of(self, container: ContainerKey) -> Iterator[Process]:
        return (each for each in self.processes.values() if each.key == container)

    # ---- What changes ------------------------------------------------------------------------------------------------

    def comes(self, process: Process) -> None:
        """It is new, or another program runs in it: what was left before is not its own."""
        process.since = self.pieces.moments.next
        self.pieces.moments.came(process.id, process.since)

    def enter(self, process: Process) -> None:
        """One that has come already, or was restored."""
        self.pieces.moments.came(process.id, process.since)
        self.processes[process.id] = process
        self.by_token[process.token] = process
        for card in process.accounts:
            self.count(process, card)

    def leave(self, process: Process) -> None:
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
        account = process.accounts.get(card)
        self.charges.count(process.id, card, account.charge if account else NOTHING)
