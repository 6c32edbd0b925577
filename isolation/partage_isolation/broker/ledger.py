"""The ledger: what each process of each container was lent of each card, and whether there is room for more.

Pure: no clock and no file of its own. Every change is told to a `Keeper` before it is answered, so that a broker which
is killed at any moment leaves books that promised nothing which they do not hold. A question is decided as

- *lent*: the container's charges and what is asked for are within its limit,
- *refused*: they are not, and would not be if everybody gave back what may be given back,
- *parked*: they may be, once siblings were recalled and a sample of NVML was taken. Asked without
  patience, it is one of the other two.

All amounts that a process says are absolute, so a question may be repeated at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.containers import CardBook, Container, Process
from partage_isolation.broker.pieces import Piece, ProcessId
from partage_isolation.broker.states import SPEAKING, Event, State
from partage_isolation.broker.verdicts import (
    MIB,
    MOST_CREDIT,
    Lent,
    NoRoom,
    Park,
    Patience,
    Refused,
    Verdict,
    credit_of,
)
from partage_isolation.broker.wire import NO_TOKEN, Amounts, Shared
from partage_plugins.vocabulary.names import CardId, ContainerKey

MOST_PROCESSES: Final = 256
"""Of one container."""
UNKNOWN_CONTEXT: Final = 512 * MIB
"""What a context takes on a model that had none yet, where the container has room for so much."""
MOST_BYTES: Final = 1 << 60
"""More is nonsense."""


class Keeper(Protocol):
    """Writes down what must survive the broker."""

    def keep(self, process: Process, card: int | None = None) -> bool:
        """The process, or what it has of one card; False where there is no room for another row."""
        ...

    def keep_piece(self, key: ContainerKey, piece: Piece) -> bool:
        """What several processes hold; False where there is no room for all of it."""
        ...

    def drop(self, process: Process, card: int | None = None) -> None:
        """Nothing of it need be known any more, or nothing of what it had of one card."""
        ...


class Ledger:
    """Of one node."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        context_in_limit: bool = True,
        context_size: Callable[[CardId], int | None] | None = None,
    ) -> None:
        """`context_size` says what a context usually takes on a card, None where that is not known yet."""
        self.containers: dict[ContainerKey, Container] = {}
        self.is_settling = False
        """The books were lost a moment ago: who holds what is being found out, and nothing more is lent meanwhile."""
        self._keeper = keeper
        self._in_limit = context_in_limit
        self._context_size = context_size or _never_seen

    # ---- Containers --------------------------------------------------------------------------------------------------

    def put(self, key: ContainerKey, cards: list[CardBook]) -> Container:
        """A container, or its new limits: a card keeps its number and what was counted of it."""
        known = self.containers.get(key)
        if known is None:
            known = self.containers[key] = Container(key, cards)
            return known
        for number, book in enumerate(cards):
            if number < len(known.cards):
                book.refused = known.cards[number].refused
        known.cards = cards
        return known

    def forget(self, key: ContainerKey) -> None:
        """A container that is gone, with all that was known of it."""
        container = self.containers.pop(key, None)
        if container is None:
            return
        for process in list(container.processes.values()):
            self._let_go(container, process)
            self._keeper.drop(process)

    def charged(self, container: Container, card: int) -> int:
        """What counts against the limit."""
        return container.charged(card, with_fixed=self._in_limit)

    def room(self, container: Container, card: int) -> int:
        """What is left below the limit; negative where a limit was lowered or overhead has risen."""
        return container.cards[card].limit - self.charged(container, card)

    # ---- Processes ---------------------------------------------------------------------------------------------------

    def begin(self, container: Container, who: ProcessId, new_token: bytes) -> Process | None:
        """A process that has no token; None where there are too many."""
        known = container.processes.get(who)
        if known is not None and known.state is not State.DEAD:
            return self._begin_anew(container, known, new_token)
        if known is not None or len(container.processes) >= MOST_PROCESSES:
            return None
        process = Process(container.key, *who, new_token)
        if not self._keeper.keep(process):
            return None
        self._enter(container, process)
        return process

    def resume(self, container: Container, who: ProcessId, token: bytes) -> Process | None:
        """A process that comes again with its token; None where that token is not its own."""
        process = container.by_token.get(token) if token != NO_TOKEN else None
        if process is None or process.id != who or process.state in (State.DEAD, State.FOUND):
            return None
        process.happens(Event.RESUMED)
        process.is_silent = False
        return process

    def restore(self, process: Process) -> bool:
        """A row that an earlier broker wrote, of a process that lives; False where its container is not known."""
        container = self.containers.get(process.key)
        if container is None:
            return False
        process.happens(Event.RESTARTED)
        self._enter(container, process)
        return True

    def found(self, container: Container, who: ProcessId, token: bytes, *, card: int, amount: int) -> Process | None:
        """A process of the container that a card shows and that never came: what it holds is charged."""
        process = container.processes.get(who)
        if process is None:
            if len(container.processes) >= MOST_PROCESSES:
                return None
            process = Process(container.key, *who, token, State.FOUND)
            if not self._keeper.keep(process):
                return None
            self._enter(container, process)
        if card not in process.accounts:
            process.on(card).doubt(amount)
            self._keeper.keep(process, card)
        return process

    def hung_up(self, process: Process) -> None:
        """Its connection broke."""
        process.happens(Event.HUNG_UP)

    def died(self, process: Process, now_ns: int) -> None:
        """It is no more. What was lent to it comes back when the cards show nothing of it."""
        process.happens(Event.DIED)
        process.died_ns = now_ns
        container = self.containers.get(process.key)
        if container is None:
            return
        if not any(account.total for account in process.accounts.values()):
            self._gone(container, process)
        else:
            self._keeper.keep(process)

    def _begin_anew(self, container: Container, process: Process, token: bytes) -> Process:
        del container.by_token[process.token]
        process.token = token
        container.by_token[token] = process
        process.happens(Event.BEGAN_ANEW)
        process.is_silent = False
        self._keeper.keep(process)
        self._let_go(container, process)
        for card, account in process.accounts.items():
            account.begin_anew()
            self._keeper.keep(process, card)
        return process

    def _enter(self, container: Container, process: Process) -> None:
        container.processes[process.id] = process
        container.by_token[process.token] = process

    def _gone(self, container: Container, process: Process) -> None:
        process.happens(Event.ABSENT)
        self._let_go(container, process)
        container.processes.pop(process.id, None)
        container.by_token.pop(process.token, None)
        self._keeper.drop(process)

    # ---- What processes say ------------------------------------------------------------------------------------------

    def lend(self, process: Process, card: int, amounts: Amounts, *, patience: Patience = Patience.ALL) -> Verdict:
        """`amounts.lent` is asked for: all that it holds and is about to take."""
        container = self.containers[process.key]
        account = self._told(process, card, amounts)
        if account is None:
            return NoRoom()
        if amounts.lent <= account.lent:
            return Lent(account.lent)
        if self.is_settling and patience:
            return Park(account.lent, ())
        left = self.room(container, card) - (amounts.lent - account.lent)
        if left < 0:
            return self._short(container, card, process, -left, patience=patience)
        account.lent, account.used = amounts.lent + credit_of(left), amounts.lent
        self._keeper.keep(process, card)
        return Lent(account.lent)

    def returned(self, process: Process, card: int, amounts: Amounts) -> bool:
        """Only so much is still needed; whether a sample is now worth taking."""
        account = self._told(process, card, amounts)
        if account is None or amounts.lent >= account.lent:
            return False
        less, account.lent = account.lent - amounts.lent, amounts.lent
        account.doubt(less)
        self._keeper.keep(process, card)
        return True

    def told(self, process: Process, card: int, amounts: Amounts) -> bool:
        """How much it uses; whether it claims more than the books have, which a sample must show."""
        account = self._told(process, card, amounts)
        return account is not None and account.claims_more

    def context(self, process: Process, card: int, amounts: Amounts, *, patience: Patience = Patience.ALL) -> Verdict:
        """A context is about to be made."""
        container = self.containers[process.key]
        account = self._told(process, card, amounts)
        if account is None:
            return NoRoom()
        if self.is_settling and patience:
            return Park(account.lent, ())
        room = self.room(container, card) + (account.reserved if self._in_limit else 0)
        size = self._context_size(container.cards[card].id)
        if size is None:
            size = min(UNKNOWN_CONTEXT, max(room, 0) // 2)
        if size > room and self._in_limit:
            return self._short(container, card, process, size - room, patience=patience)
        account.begin_context(size)
        self._keeper.keep(process, card)
        return Lent(account.lent)

    def context_ended(self, process: Process, card: int, *, made: bool) -> None:
        """What `context` began is over."""
        account = process.accounts.get(card)
        if account is not None:
            account.end_context(made=made)
            self._keeper.keep(process, card)

    # ---- Memory that several hold ------------------------------------------------------------------------------------

    def exported(self, process: Process, card: int, said: Shared, *, anybodys: bool = False) -> bool:
        """Others can hold memory of the process from now on; False where there is no room to note it."""
        pieces = self.containers[process.key].pieces
        known = pieces.made(process.id, card, said.number)
        is_new = known is None or bool(said.name and said.name not in known.names)
        if is_new and pieces.is_full:
            return False
        size = min(said.size, MOST_BYTES)
        piece = pieces.export(process.id, card, said.number, name=said.name, size=size, anybodys=anybodys)
        return self._keeper.keep_piece(process.key, piece)

    def left(self, process: Process, card: int, said: Shared) -> int:
        """The process has given back `said.size` of the piece in all; what is lent to it then.

        What others have open is charged to the container first, so that nothing is charged to nobody.
        """
        container = self.containers[process.key]
        account = process.on(card)
        piece = container.pieces.made(process.id, card, said.number)
        if piece is not None:
            is_left = container.pieces.give(piece, said.size, container.living())
            self._keeper.keep_piece(process.key, piece)
            if is_left:
                account.leave(said.freed)
                self._keeper.keep(process, card)
        return account.lent

    def opened(self, process: Process, card: int, said: Shared) -> int | None:
        """The process has memory of another open, or is about to; how much that is: 0 where nobody made it.

        None: what nobody made does not fit, or there is no room to note it.
        """
        container = self.containers[process.key]
        pieces, size = container.pieces, min(said.size, MOST_BYTES)
        known = pieces.find(process.id, said.name)
        if not pieces.holds(process.id, said.name) and pieces.is_full:
            return None
        if size > (known.longest if known else 0) and size > self.room(container, card):
            return None
        piece = pieces.open(process.id, card, said.name, size)
        if piece is None:
            return 0
        if self._keeper.keep_piece(process.key, piece):
            return piece.longest
        self.closed(process, said)
        return None

    def closed(self, process: Process, said: Shared) -> None:
        """It has let go of it."""
        piece = self.containers[process.key].pieces.close(process.id, said.name)
        if piece is not None:
            self._keeper.keep_piece(process.key, piece)

    def _let_go(self, container: Container, process: Process, card: int | None = None) -> None:
        """It has nothing any more, on that card or on any."""
        for piece in container.pieces.gone(process.id, container.living(), card):
            self._keeper.keep_piece(container.key, piece)

    def _told(self, process: Process, card: int, amounts: Amounts) -> Account | None:
        """Notes what it says; its account, or None where there is no row for one, or it died while it waited."""
        if process.state in (State.DEAD, State.GONE):
            return None
        is_new = card not in process.accounts
        account = process.on(card)
        if is_new and not self._keeper.keep(process, card):
            del process.accounts[card]
            return None
        process.is_silent = False
        account.used, account.changes = min(amounts.used, MOST_BYTES), amounts.changes
        account.in_flight = amounts.in_flight
        return account

    def _short(self, container: Container, card: int, asker: Process, short: int, *, patience: Patience) -> Verdict:
        """So much is missing: whether waiting may help."""
        lent = asker.accounts[card].lent
        recall = tuple(self._lenders(container, card, asker)) if patience is Patience.ALL else ()
        if patience:
            idle = sum(min(process.accounts[card].lent, MOST_CREDIT) for process in recall)
            if short <= idle + self.provable(container, card):
                return Park(lent, recall)
        container.cards[card].refused += 1
        return Refused(lent)

    def _lenders(self, container: Container, card: int, asker: Process) -> Iterator[Process]:
        """Those that may have more than they use, and would say so."""
        for process, account in container.accounts(card):
            is_there = process.state is State.LIVE and not process.is_silent and not process.is_waiting
            if is_there and account.lent and process is not asker:
                yield process

    def believed(self, container: Container, card: int) -> int:
        """What is charged, less what living processes say to have freed: if it is true, it is lent again on demand."""
        freed = sum(account.unproved for process, account in container.accounts(card) if process.state in SPEAKING)
        return self.charged(container, card) - freed

    def provable(self, container: Container, card: int) -> int:
        """What a sample may show to be free."""
        amount = 0
        for process, account in container.accounts(card):
            if process.state is State.DEAD:
                amount += account.total
            else:
                amount += account.unproved
                is_measured = process.state is State.LIVE and not process.is_silent  # it must say what it uses
                if is_measured and (account.is_made or account.falls):
                    amount += account.reserved + account.overhead
        return amount

    # ---- What samples show -------------------------------------------------------------------------------------------

    def on_card(self, card: CardId) -> Iterator[tuple[Container, int, Process, Account]]:
        """Every account on a card of the node."""
        for container in self.containers.values():
            number = container.card_number(card)
            if number is not None:
                for process, account in list(container.accounts(number)):
                    yield container, number, process, account

    def absent(self, container: Container, card: int, process: Process) -> None:
        """A sample that began after its death shows nothing of it on that card."""
        self._let_go(container, process, card)
        del process.accounts[card]
        if not any(each.total for each in process.accounts.values()):
            self._gone(container, process)
        else:
            self._keeper.drop(process, card)

    def changed(self, process: Process, card: int) -> None:
        """A sample changed an account."""
        self._keeper.keep(process, card)

    # ---- For whoever looks -------------------------------------------------------------------------------------------

    def processes(self) -> Mapping[ContainerKey, tuple[Process, ...]]:
        """All, by container."""
        return {key: tuple(container.processes.values()) for key, container in self.containers.items()}


def _never_seen(_card: CardId) -> int | None:
    return None
