"""What processes say of their memory, and whether there is room for more.

Pure. A question is decided as

- *lent*: the container's charges and what is asked for are within its limit,
- *refused*: they are not, and would not be if everybody gave back what may be given back,
- *parked*: they may be, once siblings were recalled and a sample of NVML was taken. Asked without
  patience, it is one of the other two.

All amounts that a process says are absolute, so a question may be repeated at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.containers import CardBook, Container, Process
from partage_isolation.broker.entries import Entries
from partage_isolation.broker.freeable import lenders, provable
from partage_isolation.broker.states import State
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
from partage_isolation.broker.wire import Amounts
from partage_plugins.vocabulary.names import CardId

UNKNOWN_CONTEXT: Final = 512 * MIB
"""What a context takes on a model that had none yet, where the container has room for so much."""

_OVER: Final = (State.DEAD, State.GONE)

ContextSize = Callable[[CardId], int | None]
"""What a context usually takes on a card; None where that is not known yet."""


class Lending:
    """In all containers."""

    def __init__(self, entries: Entries, context_size: ContextSize) -> None:
        self.is_settling = False
        """The books were lost a moment ago: who holds what is being found out, and nothing more is lent meanwhile."""
        self._entries, self._context_size = entries, context_size

    # ---- Questions ---------------------------------------------------------------------------------------------------

    def lend(
        self, process: Process, card: int, amounts: Amounts, patience: Patience = Patience.ALL, *, again: bool = False
    ) -> Verdict:
        """`amounts.lent` is asked for: all that it holds and is about to take.

        `again`: the same call of a program asked before, and was refused.
        """
        account = self._told(process, card, amounts)
        if account is None:
            return NoRoom()
        if amounts.lent <= account.lent:
            return Lent(account.lent)
        if self.is_settling and patience:
            return Park(account.lent, ())
        container = self._entries.of(process)
        left = container.room(card) - (amounts.lent - account.lent)
        if left < 0:
            parked = _parked(container, card, process, -left, patience)
            return parked or _refused(container.cards[card], account, again=again)
        account.lend(amounts.lent, credit_of(left))
        self._entries.note(process, card)
        return Lent(account.lent)

    def context(
        self, process: Process, card: int, amounts: Amounts, patience: Patience = Patience.ALL, *, again: bool = False
    ) -> Verdict:
        """A context is about to be made; `again` as for `lend`."""
        account = self._told(process, card, amounts)
        if account is None:
            return NoRoom()
        if self.is_settling and patience:
            return Park(account.lent, ())
        container = self._entries.of(process)
        room = container.room(card) + (account.reserved if container.context_in_limit else 0)
        size = self._size(container, card, room)
        if size > room and container.context_in_limit:
            parked = _parked(container, card, process, size - room, patience)
            return parked or _refused(container.cards[card], account, again=again)
        account.begin_context(size)
        self._entries.note(process, card)
        return Lent(account.lent)

    def _size(self, container: Container, card: int, room: int) -> int:
        known = self._context_size(container.cards[card].id)
        return min(UNKNOWN_CONTEXT, max(room, 0) // 2) if known is None else known

    # ---- What is only told -------------------------------------------------------------------------------------------

    def returned(self, process: Process, card: int, amounts: Amounts) -> bool:
        """Only so much is still needed; whether a sample is now worth taking."""
        account = self._told(process, card, amounts)
        if account is None or amounts.lent >= account.lent:
            return False
        account.give_back(amounts.lent)
        self._entries.note(process, card)
        return True

    def told(self, process: Process, card: int, amounts: Amounts) -> bool:
        """How much it uses; whether it claims more than the books have, which a sample must show."""
        account = self._told(process, card, amounts)
        return account is not None and account.claims_more

    def context_ended(self, process: Process, card: int, *, made: bool) -> None:
        """What `context` began is over."""
        account = process.accounts.get(card)
        if account is not None:
            account.end_context(made=made)
            self._entries.note(process, card)

    def _told(self, process: Process, card: int, amounts: Amounts) -> Account | None:
        """Notes what it says; its account, or None where there is no row for one, or it died while it waited."""
        if process.state in _OVER:
            return None
        account = process.accounts.get(card)
        if account is None:
            account = process.on(card)
            if not self._entries.note(process, card):
                del process.accounts[card]
                return None
        process.is_silent = False
        account.tell(amounts)
        return account


def _parked(container: Container, card: int, asker: Process, short: int, patience: Patience) -> Park | None:
    """So much is missing: None where waiting does not help."""
    if not patience:
        return None
    recall = tuple(lenders(container, card, asker)) if patience is Patience.ALL else ()
    idle = sum(min(process.accounts[card].lent, MOST_CREDIT) for process in recall)
    is_worth_it = short <= idle + provable(container, card)
    return Park(asker.accounts[card].lent, recall) if is_worth_it else None


def _refused(book: CardBook, account: Account, *, again: bool) -> Refused:
    """Counted once for each call of a program, which asks again before it believes."""
    book.refused += not again
    return Refused(account.lent)
