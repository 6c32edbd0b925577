"""Budget of one container, or of several of a pod: cards with their limits, processes, and charges.

Pure. A container that shares with no other has a budget of its own, so there is only one kind of budget. Processes name
cards by number; a number keeps its card while the budget lives. The table of `Event`s alone defines a process's state:
an event that the table does not have for a state changes nothing.
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
from partage_plugins.api.names import CardId, CardIdText, ContainerKey


class State(IntEnum):
    """State of a process. The numbers are written to files."""

    LIVE = 1
    """Connected."""
    DETACHED = 2
    """Alive, but its connection is gone: still charged."""
    UNCONFIRMED = 3
    """Known from before the broker's start, and not heard from yet."""
    FOUND = 4
    """Never connected; a card shows it, and it belongs to the container."""
    DEAD = 5
    """Dead; charged until the card no longer shows it."""
    GONE = 6
    """Forgotten."""


class Event(IntEnum):
    HUNG_UP = 1
    RESUMED = 2
    """It reconnected with its token."""
    BEGAN_ANEW = 3
    """It connected without one: it has executed another program."""
    RESTARTED = 4
    """The broker was restarted."""
    DIED = 5
    ABSENT = 6
    """No card shows it any more."""


_ALIVE: Final = (State.LIVE, State.DETACHED, State.UNCONFIRMED, State.FOUND)

SPEAKING: Final = (State.LIVE, State.DETACHED, State.UNCONFIRMED)
"""Alive, and known to report for themselves."""

TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.LIVE, Event.HUNG_UP): State.DETACHED,
    (State.LIVE, Event.RESTARTED): State.UNCONFIRMED,
    (State.DETACHED, Event.RESTARTED): State.UNCONFIRMED,
    # A broken connection may be noticed after the next one is there.
    (State.LIVE, Event.RESUMED): State.LIVE,
    (State.DETACHED, Event.RESUMED): State.LIVE,
    (State.UNCONFIRMED, Event.RESUMED): State.LIVE,
    **{(state, Event.BEGAN_ANEW): State.LIVE for state in _ALIVE},
    **{(state, Event.DIED): State.DEAD for state in _ALIVE},
    (State.FOUND, Event.ABSENT): State.GONE,
    (State.DEAD, Event.ABSENT): State.GONE,
}


def after(state: State, event: Event) -> State:
    """The state after an event; unchanged where the table has no transition."""
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
    """It did not answer a notification in time, and is not waited for until it reports something."""
    is_prompt: bool = False
    """It gives back also while a request of its own is deferred, and names the recall that it answers."""
    died_ns: int = 0
    since: int = 0
    """The epoch at which it came (see `Moments`); 0 for rows from before epochs existed."""

    @property
    def id(self) -> ProcessId:
        return self.pid, self.start

    @property
    def has_something(self) -> bool:
        return any(account.total for account in self.accounts.values())

    def on(self, card: int) -> Account:
        """Its account on that card, created on demand."""
        account = self.accounts.get(card)
        if account is None:
            account = self.accounts[card] = Account()
        return account

    def happens(self, event: Event) -> None:
        self.state = after(self.state, event)


class CardSpec(Struct, frozen=True, kw_only=True):
    """The grant of one card, and what root has lowered since; bytes and milli. Written to files."""

    id: CardIdText
    memory: int
    share: int
    limit: int
    lowered: int | None = None
    """Memory, lowered by root on the node."""
    most: int = 0
    """Memory: the highest grant before this one."""
    lowered_share: int | None = None
    lowered_limit: int | None = None
    movable: bool = False
    """Its memory leaves the card during others' time slices."""

    @property
    def memory_in_force(self) -> int:
        return self.memory if self.lowered is None else min(self.memory, self.lowered)

    @property
    def most_memory(self) -> int:
        """The highest grant ever."""
        return max(self.most, self.memory)

    @property
    def limit_in_force(self) -> int:
        return self.limit if self.lowered_limit is None else min(self.limit, self.lowered_limit)

    @property
    def share_in_force(self) -> int:
        """The guaranteed fraction of its time, never above the ceiling."""
        share = self.share if self.lowered_share is None else min(self.share, self.lowered_share)
        return min(share, self.limit_in_force)


@dataclass(slots=True, eq=False)
class Budget:
    key: BudgetKey
    cards: tuple[CardSpec, ...]
    context_in_limit: bool = True
    """Contexts and the like count against the limit."""
    containers: set[ContainerKey] = field(default_factory=set[ContainerKey])
    """Containers that use it."""
    processes: dict[ProcessId, Process] = field(default_factory=dict[ProcessId, Process])
    by_token: dict[bytes, Process] = field(default_factory=dict[bytes, Process])
    pieces: Pieces = field(default_factory=Pieces)
    """Shared memory."""
    charges: Charges = field(default_factory=Charges)
    """Charges of each process."""
    waiting: dict[Process, int] = field(default_factory=dict[Process, int])
    """Processes with a deferred request, and the card it is about."""
    is_away: bool = False
    """The driver holds its processes on the host, or is about to move them there or back: samples don't show them."""
    refused: Counter[int] = field(default_factory=Counter[int])
    """Number of requests refused at the limit, by card."""

    def card_number(self, card: CardId) -> int | None:
        return next((number for number, each in enumerate(self.cards) if each.id == card), None)

    def accounts(self, card: int) -> Iterator[tuple[Process, Account]]:
        for process in self.processes.values():
            account = process.accounts.get(card)
            if account is not None:
                yield process, account

    def charged(self, card: int) -> int:
        """Memory that counts against the limit: of all processes, and shared memory that its makers released."""
        asked, fixed = self.charges.on(card)
        return asked + self.shared(card) + (fixed if self.context_in_limit else 0)

    def room(self, card: int) -> int:
        """Memory left below the limit; negative where a limit was lowered or overhead has risen."""
        return self.cards[card].memory_in_force - self.charged(card)

    def is_short(self, card: int) -> bool:
        """A deferred request waits for memory of this card."""
        return card in self.waiting.values()

    def fixed(self, card: int) -> int:
        """Memory of its processes that no program requested."""
        return self.charges.on(card).fixed

    def shared(self, card: int) -> int:
        """Shared memory that its maker released and others have open."""
        return self.pieces.left.get(card, 0)

    def of(self, container: ContainerKey) -> Iterator[Process]:
        return (each for each in self.processes.values() if each.key == container)

    # ---- Changes -----------------------------------------------------------------------------------------------------

    def comes(self, process: Process) -> None:
        """The process is new, or runs another program: what was left before does not belong to it."""
        process.since = self.pieces.moments.next
        self.pieces.moments.came(process.id, process.since)

    def enter(self, process: Process) -> None:
        """Add a process that has come already, or was restored."""
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
        """Replace its token."""
        del self.by_token[process.token]
        process.token = token
        self.by_token[token] = process

    def count(self, process: Process, card: int) -> None:
        account = process.accounts.get(card)
        self.charges.count(process.id, card, account.charge if account else NOTHING)
