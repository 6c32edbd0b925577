"""The ledger: each process's quota of each card's memory, and whether there is room for more.

Pure: no clock and no file of its own. `ProcessTable` tracks processes, `QuotaAccounting` handles requests for memory,
and `Sharing` tracks memory that several processes hold. All of them write through `Entries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from partage_isolation.ledger.account import MOST_BYTES, Account
from partage_isolation.ledger.budget import Budget, CardSpec, Event, Process, State
from partage_isolation.ledger.entries import Entries, Journal
from partage_isolation.ledger.pieces import ProcessId, Shared
from partage_isolation.ledger.quota_accounting import ContextSize, QuotaAccounting
from partage_isolation.names import BudgetKey, own_budget
from partage_plugins.api.names import CardId, ContainerKey


class Sharing:
    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def exported(self, process: Process, card: int, said: Shared, *, anybodys: bool = False) -> bool:
        """Record that others can open memory of the process; False where there is no room to store that."""
        budget = self._entries.of(process)
        pieces = budget.pieces
        known = pieces.made(process.id, card, said.number)
        is_new = known is None or bool(said.name and said.name not in known.names)
        if is_new and pieces.is_full:
            return False
        size = min(said.size, MOST_BYTES)
        piece = pieces.export(process.id, card, said.number, name=said.name, size=size, anybodys=anybodys)
        if self._entries.piece(budget, piece):
            return True
        if is_new:
            pieces.take_back(piece, said.name, is_new=known is None)
            self._entries.piece(budget, piece)
        return False

    def left(self, process: Process, card: int, said: Shared) -> int:
        """Record how much of a shared allocation its maker has given back in all; return the maker's quota then.

        What others have open is charged to the budget first, so that every byte is charged. The process's charge drops
        by no more than that, regardless of what it reports.
        """
        budget = self._entries.of(process)
        account = process.on(card)
        piece = budget.pieces.made(process.id, card, said.number)
        if piece is not None:
            left = budget.pieces.give(piece, said.size)
            self._entries.piece(budget, piece)
            if left:
                account.leave(min(said.freed, left))
                self._entries.note(process, card)
        return account.lent

    def opened(self, process: Process, card: int, said: Shared) -> int | None:
        """Record that the process opens shared memory; return its size, or 0 if it is unknown and no process made it.

        None: memory that no process made does not fit, or there is no room to store the record.
        """
        budget = self._entries.of(process)
        pieces, size = budget.pieces, min(said.size, MOST_BYTES)
        known = pieces.find(process.id, said.name)
        if not pieces.holds(process.id, said.name) and pieces.is_full:
            return None
        if size > (known.longest if known else 0) and size > budget.room(card):
            return None
        piece = pieces.open(process.id, card, said.name, size)
        if piece is None:
            return 0
        if self._entries.piece(budget, piece):
            return piece.longest
        self.closed(process, said)
        return None

    def closed(self, process: Process, said: Shared) -> None:
        budget = self._entries.of(process)
        piece = budget.pieces.close(process.id, said.name)
        if piece is not None:
            self._entries.piece(budget, piece)

    def gone(self, budget: Budget, process: Process, card: int | None = None) -> None:
        """Release all that the process has on that card, or on any."""
        for piece in budget.pieces.gone(process.id, card):
            self._entries.piece(budget, piece)


MOST_PROCESSES: Final = 256
"""Limit for one container."""


class ProcessTable:
    def __init__(self, entries: Entries, sharing: Sharing) -> None:
        self._entries, self._sharing = entries, sharing

    # ---- Arrival -----------------------------------------------------------------------------------------------------

    def begin(self, container: ContainerKey, who: ProcessId, new_token: bytes) -> Process | None:
        """Add a process without a token; None if there are too many, or it belongs to another container."""
        budget = self._entries.containers[container]
        known = budget.processes.get(who)
        if known is None:
            return self._add(budget, Process(container, *who, new_token))
        if known.state is State.DEAD or known.key != container:
            return None
        return self._begin_anew(budget, known, new_token)

    def named(self, container: ContainerKey, who: ProcessId, token: bytes) -> Process | None:
        """The process with that token; None if the token belongs to another."""
        process = self._entries.containers[container].by_token.get(token)
        if process is None or process.state in (State.DEAD, State.FOUND):
            return None
        return process if (process.key, process.id) == (container, who) else None

    def resume(self, container: ContainerKey, who: ProcessId, token: bytes) -> Process | None:
        """Reconnect a process by its token; None as for `named`."""
        process = self.named(container, who, token)
        if process is None:
            return None
        process.happens(Event.RESUMED)
        process.is_silent = False
        for account in process.accounts.values():
            account.is_dry = False  # a return may have been lost
        return process

    def restore(self, process: Process) -> bool:
        """Restore a live process from an earlier broker's row; False where its container is unknown."""
        budget = self._entries.containers.get(process.key)
        if budget is None:
            return False
        process.happens(Event.RESTARTED)
        budget.enter(process)
        return True

    def found(self, container: ContainerKey, who: ProcessId, token: bytes, *, card: int, amount: int) -> Process | None:
        """Add a process that a card shows and that never connected, and charge what it holds."""
        budget = self._entries.containers[container]
        process = budget.processes.get(who) or self._add(budget, Process(container, *who, token, State.FOUND))
        if process is not None and card not in process.accounts:
            process.on(card).doubt(amount)
            self._entries.note(process, card)
        return process

    def _add(self, budget: Budget, process: Process) -> Process | None:
        has_room = sum(1 for _ in budget.of(process.key)) < MOST_PROCESSES
        return process if has_room and self._entries.add(budget, process) else None

    def _begin_anew(self, budget: Budget, process: Process, token: bytes) -> Process:
        budget.has_token(process, token)
        process.happens(Event.BEGAN_ANEW)
        process.is_silent = False
        self._sharing.gone(budget, process)
        budget.comes(process)
        self._entries.changed(process)
        for card, account in process.accounts.items():
            account.begin_anew()
            self._entries.note(process, card)
        return process

    # ---- Departure ---------------------------------------------------------------------------------------------------

    def hung_up(self, process: Process) -> None:
        process.happens(Event.HUNG_UP)

    def died(self, process: Process, now_ns: int) -> None:
        """Mark it dead. Its quota returns when the cards no longer show it."""
        process.happens(Event.DIED)
        process.died_ns = now_ns
        budget = self._entries.containers.get(process.key)
        if budget is None or budget.processes.get(process.id) is not process:
            return  # the container was forgotten, and its key may be reused
        if process.has_something:
            self._entries.changed(process)
        else:
            self._gone(budget, process)

    def absent(self, budget: Budget, card: int, process: Process) -> None:
        """A sample that began after its death no longer shows it on that card."""
        self._sharing.gone(budget, process, card)
        self._entries.strike(budget, process, card)
        if not process.has_something:
            self._gone(budget, process)

    def forgotten(self, budget: Budget, container: ContainerKey) -> None:
        for process in list(budget.of(container)):
            self._sharing.gone(budget, process)
            self._entries.remove(budget, process)

    def _gone(self, budget: Budget, process: Process) -> None:
        process.happens(Event.ABSENT)
        self._sharing.gone(budget, process)
        self._entries.remove(budget, process)


class Ledger:
    def __init__(
        self, keeper: Journal, *, context_in_limit: bool = True, context_size: ContextSize | None = None
    ) -> None:
        self.entries = Entries(keeper)
        self.containers: Mapping[ContainerKey, Budget] = self.entries.containers
        """The budget of each container."""
        self.budgets: dict[BudgetKey, Budget] = {}
        self.sharing = Sharing(self.entries)
        self.lives = ProcessTable(self.entries, self.sharing)
        self.accounting = QuotaAccounting(self.entries, context_size or _never_seen)
        self._in_limit = context_in_limit

    def put(self, container: ContainerKey, cards: tuple[CardSpec, ...], budget: BudgetKey | None = None) -> Budget:
        """Set a container's cards, alone or with others of a budget; a later call sets new limits.

        A card keeps its number and its charges.
        """
        key = budget or own_budget(container)
        known = self.budgets.get(key)
        if known is None:
            known = self.budgets[key] = Budget(key, cards, self._in_limit)
        else:
            known.cards = cards
        known.containers.add(container)
        self.entries.containers[container] = known
        return known

    def forget(self, container: ContainerKey) -> None:
        """Remove a container; its budget ends with the last container."""
        budget = self.entries.containers.pop(container, None)
        if budget is None:
            return
        self.lives.forgotten(budget, container)
        budget.containers.discard(container)
        if not budget.containers:
            del self.budgets[budget.key]

    def on_card(self, card: CardId) -> Iterator[tuple[Budget, int, Process, Account]]:
        for budget in self.budgets.values():
            number = budget.card_number(card)
            if number is not None:
                for process, account in list(budget.accounts(number)):
                    yield budget, number, process, account


def _never_seen(_card: CardId) -> int | None:
    return None
