"""The ledger: what each process of each container was lent of each card, and whether there is room for more.

Pure: no clock and no file of its own. `Lives` has processes that come and go, `Lending` their questions for memory,
`Sharing` memory that several hold. All of them write through `Entries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from partage_isolation.ledger.account import MOST_BYTES, Account
from partage_isolation.ledger.container import CardBook, Container, Event, Process, State
from partage_isolation.ledger.entries import Entries, Keeper
from partage_isolation.ledger.loans import ContextSize, Lending
from partage_isolation.ledger.pieces import ProcessId, Shared
from partage_plugins.vocabulary.names import CardId, ContainerKey


class Sharing:
    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def exported(self, process: Process, card: int, said: Shared, *, anybodys: bool = False) -> bool:
        """Others can hold memory of the process from now on; False where there is no room to note it."""
        pieces = self._entries.of(process).pieces
        known = pieces.made(process.id, card, said.number)
        is_new = known is None or bool(said.name and said.name not in known.names)
        if is_new and pieces.is_full:
            return False
        size = min(said.size, MOST_BYTES)
        piece = pieces.export(process.id, card, said.number, name=said.name, size=size, anybodys=anybodys)
        return self._entries.piece(process.key, piece)

    def left(self, process: Process, card: int, said: Shared) -> int:
        """The process has given back `said.size` of the piece in all; what is lent to it then.

        What others have open is charged to the container first, so that every byte is charged. The process is
        rid of no more than that, whatever it says.
        """
        container = self._entries.of(process)
        account = process.on(card)
        piece = container.pieces.made(process.id, card, said.number)
        if piece is not None:
            left = container.pieces.give(piece, said.size, container.living())
            self._entries.piece(process.key, piece)
            if left:
                account.leave(min(said.freed, left))
                self._entries.note(process, card)
        return account.lent

    def opened(self, process: Process, card: int, said: Shared) -> int | None:
        """The process has memory of another open, or is about to; how much that is: 0 where no process made it.

        None: what no process made does not fit, or there is no room to note it.
        """
        container = self._entries.of(process)
        pieces, size = container.pieces, min(said.size, MOST_BYTES)
        known = pieces.find(process.id, said.name)
        if not pieces.holds(process.id, said.name) and pieces.is_full:
            return None
        if size > (known.longest if known else 0) and size > container.room(card):
            return None
        piece = pieces.open(process.id, card, said.name, size)
        if piece is None:
            return 0
        if self._entries.piece(process.key, piece):
            return piece.longest
        self.closed(process, said)
        return None

    def closed(self, process: Process, said: Shared) -> None:
        piece = self._entries.of(process).pieces.close(process.id, said.name)
        if piece is not None:
            self._entries.piece(process.key, piece)

    def gone(self, container: Container, process: Process, card: int | None = None) -> None:
        """The process has nothing any more, on that card or on any."""
        for piece in container.pieces.gone(process.id, container.living(), card):
            self._entries.piece(container.key, piece)


MOST_PROCESSES: Final = 256
"""Of one container."""


class Lives:
    def __init__(self, entries: Entries, sharing: Sharing) -> None:
        self._entries, self._sharing = entries, sharing

    # ---- They come ---------------------------------------------------------------------------------------------------

    def begin(self, container: Container, who: ProcessId, new_token: bytes) -> Process | None:
        """A process that has no token; None where there are too many."""
        known = container.processes.get(who)
        if known is None:
            return self._add(container, Process(container.key, *who, new_token))
        return None if known.state is State.DEAD else self._begin_anew(container, known, new_token)

    def resume(self, container: Container, who: ProcessId, token: bytes) -> Process | None:
        """A process that comes again with its token; None where that token is not its own."""
        process = container.by_token.get(token)
        if process is None or process.id != who or process.state in (State.DEAD, State.FOUND):
            return None
        process.happens(Event.RESUMED)
        process.is_silent = False
        return process

    def restore(self, process: Process) -> bool:
        """A row that an earlier broker wrote, of a process that lives; False where its container is not known."""
        container = self._entries.containers.get(process.key)
        if container is None:
            return False
        process.happens(Event.RESTARTED)
        container.enter(process)
        return True

    def found(self, container: Container, who: ProcessId, token: bytes, *, card: int, amount: int) -> Process | None:
        """A process of the container that a card shows and that never came: what it holds is charged."""
        process = container.processes.get(who) or self._add(container, Process(container.key, *who, token, State.FOUND))
        if process is not None and card not in process.accounts:
            process.on(card).doubt(amount)
            self._entries.note(process, card)
        return process

    def _add(self, container: Container, process: Process) -> Process | None:
        has_room = len(container.processes) < MOST_PROCESSES
        return process if has_room and self._entries.add(container, process) else None

    def _begin_anew(self, container: Container, process: Process, token: bytes) -> Process:
        container.has_token(process, token)
        process.happens(Event.BEGAN_ANEW)
        process.is_silent = False
        self._entries.changed(process)
        self._sharing.gone(container, process)
        for card, account in process.accounts.items():
            account.begin_anew()
            self._entries.note(process, card)
        return process

    # ---- They go -----------------------------------------------------------------------------------------------------

    def hung_up(self, process: Process) -> None:
        process.happens(Event.HUNG_UP)

    def died(self, process: Process, now_ns: int) -> None:
        """It is no more. What was lent to it comes back when the cards show nothing of it."""
        process.happens(Event.DIED)
        process.died_ns = now_ns
        container = self._entries.containers.get(process.key)
        if container is None or container.processes.get(process.id) is not process:
            return  # the container was forgotten; of its key there may be another by now
        if process.has_something:
            self._entries.changed(process)
        else:
            self._gone(container, process)

    def absent(self, container: Container, card: int, process: Process) -> None:
        """A sample that began after its death shows nothing of it on that card."""
        self._sharing.gone(container, process, card)
        self._entries.strike(container, process, card)
        if not process.has_something:
            self._gone(container, process)

    def forgotten(self, container: Container) -> None:
        for process in list(container.processes.values()):
            self._sharing.gone(container, process)
            self._entries.remove(container, process)

    def _gone(self, container: Container, process: Process) -> None:
        process.happens(Event.ABSENT)
        self._sharing.gone(container, process)
        self._entries.remove(container, process)


class Ledger:
    def __init__(
        self, keeper: Keeper, *, context_in_limit: bool = True, context_size: ContextSize | None = None
    ) -> None:
        self.entries = Entries(keeper)
        self.containers = self.entries.containers
        self.sharing = Sharing(self.entries)
        self.lives = Lives(self.entries, self.sharing)
        self.lending = Lending(self.entries, context_size or _never_seen)
        self._in_limit = context_in_limit

    def put(self, key: ContainerKey, cards: list[CardBook]) -> Container:
        known = self.containers.get(key)
        if known is None:
            known = self.containers[key] = Container(key, cards, self._in_limit)
        else:
            known.put(cards)
        return known

    def forget(self, key: ContainerKey) -> None:
        container = self.containers.pop(key, None)
        if container is not None:
            self.lives.forgotten(container)

    def on_card(self, card: CardId) -> Iterator[tuple[Container, int, Process, Account]]:
        for container in self.containers.values():
            number = container.card_number(card)
            if number is not None:
                for process, account in list(container.accounts(number)):
                    yield container, number, process, account


def _never_seen(_card: CardId) -> int | None:
    return None
