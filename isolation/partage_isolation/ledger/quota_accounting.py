"""Decisions on requests for memory. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, Protocol

from msgspec import Struct

from partage_isolation.ledger.account import Account, Amounts
from partage_isolation.ledger.budget import SPEAKING, Budget, Process, State
from partage_isolation.ledger.entries import Entries
from partage_plugins.api.names import CardId

MIB: Final = 1 << 20
MOST_CREDIT: Final = 32 * MIB
CREDIT_PART: Final = 16
"""A sixteenth of what is left may be lent as unrequested credit."""
_CREDIT_STEP: Final = 2 * MIB


class Patience(IntEnum):
    NONE = 0
    PROOF = 1
    """Wait for a sample, which may show that more is free."""
    ALL = 2
    """Also wait for other processes to return unused credit."""


class Lent(Struct, frozen=True):
    lent: int


class Refused(Struct, frozen=True):
    """The limit does not allow it; the process keeps its quota."""

    lent: int
    is_sure: bool = True
    """Confirmed: at some moment since the request there was no room (see `rounds`). Otherwise it may be retried."""


class Defer(Struct, frozen=True):
    """May become possible shortly, after others return unused credit and a sample is taken."""

    lent: int


class NoRoom(Struct, frozen=True):
    """There is no row for another process."""


class Out(Struct, frozen=True):
    """The limit allows it, but the card has no room now: to be retried once its memory is back on the card."""


Verdict = Lent | Refused | Defer | NoRoom | Out


class Ask(Protocol):
    """A request for memory; with all patience by default."""

    def __call__(
        self, process: Process, card: int, amounts: Amounts, *, again: bool, patience: Patience = ...
    ) -> Verdict: ...


class Decide(Protocol):
    def __call__(self, *, patience: Patience) -> Verdict: ...


def credit_of(left: int) -> int:
    """Credit to lend when this much is left: none near the limit."""
    return min(MOST_CREDIT, left // CREDIT_PART) // _CREDIT_STEP * _CREDIT_STEP


def believed(budget: Budget, card: int) -> int:
    """Charges less what live processes report as freed: if true, that can be lent again on demand."""
    freed = sum(account.unproved for process, account in budget.accounts(card) if process.state in SPEAKING)
    return budget.charged(card) - freed


def provable(budget: Budget, card: int) -> int:
    """Memory that a sample may show to be free."""
    return sum(_provable(process, account) for process, account in budget.accounts(card))


def _provable(process: Process, account: Account) -> int:
    if process.state is State.DEAD:
        return account.total
    is_measured = process.state is State.LIVE and not process.is_silent  # needs its usage report
    if is_measured and (account.is_made or account.falls):
        return account.unproved + account.fixed
    return account.unproved + (account.overhead if is_measured and account.reserved else 0)


def holders(budget: Budget, card: int, asker: Process | None = None) -> Iterator[tuple[Process, Account]]:
    """Other processes that may have more than they use."""
    for process, account in budget.accounts(card):
        if account.lent and process.state in SPEAKING and process is not asker:
            yield process, account


def lenders(budget: Budget, card: int, asker: Process | None = None) -> Iterator[Process]:
    """Those of them that would reply to a recall."""
    for process, _ in holders(budget, card, asker):
        can_give = process.is_prompt or process not in budget.waiting
        if can_give and process.state is State.LIVE and not process.is_silent:
            yield process


UNKNOWN_CONTEXT: Final = 512 * MIB
"""Assumed size of a model's first context, where the budget has enough room."""

_OVER: Final = (State.DEAD, State.GONE)

ContextSize = Callable[[CardId], int | None]
"""Usual size of a context on a card; None while unknown."""


class QuotaAccounting:
    def __init__(self, entries: Entries, context_size: ContextSize) -> None:
        self.is_settling = False
        """The ledger was just lost: holdings are being reported again, and nothing more is lent meanwhile."""
        self._entries, self._context_size = entries, context_size

    # ---- Requests ----------------------------------------------------------------------------------------------------

    def lend(
        self, process: Process, card: int, amounts: Amounts, patience: Patience = Patience.ALL, *, again: bool = False
    ) -> Verdict:
        """Request `amounts.lent` in total: all that the process holds and is about to take.

        `again`: the same call of a program requested before, and was refused.
        """
        account = self._told(process, card, amounts, is_old=patience is not Patience.ALL)
        if account is None:
            return NoRoom()
        if amounts.lent <= account.lent:
            return Lent(account.lent)
        if self.is_settling and patience:
            return Defer(account.lent)
        budget = self._entries.of(process)
        left = budget.room(card) - (amounts.lent - account.lent)
        if left < 0:
            return _short(budget, card, process, -left, patience, again=again)
        # Credit would occupy the card during the next container's time slice.
        has_credit = not (budget.is_short(card) or budget.cards[card].movable)
        account.lend(amounts.lent, credit_of(left) if has_credit else 0)
        self._entries.note(process, card)
        return Lent(account.lent)

    def context(
        self, process: Process, card: int, amounts: Amounts, patience: Patience = Patience.ALL, *, again: bool = False
    ) -> Verdict:
        """Request memory for a context; `again` as for `lend`."""
        account = self._told(process, card, amounts, is_old=patience is not Patience.ALL)
        if account is None:
            return NoRoom()
        if self.is_settling and patience:
            return Defer(account.lent)
        budget = self._entries.of(process)
        is_same = budget.context_in_limit and not account.is_made
        room = budget.room(card) + (account.reserved if is_same else 0)
        size = self._size(budget, card, room)
        if size > room and budget.context_in_limit:
            return _short(budget, card, process, size - room, patience, again=again)
        account.begin_context(size)
        self._entries.note(process, card)
        return Lent(account.lent)

    def _size(self, budget: Budget, card: int, room: int) -> int:
        """Usual size of a context; before one was measured, the largest charge of an existing one."""
        known = self._context_size(budget.cards[card].id)
        if known is None:
            known = max((account.fixed for _, account in budget.accounts(card) if account.is_made), default=None)
        return min(UNKNOWN_CONTEXT, max(room, 0) // 2) if known is None else known

    # ---- Reports -----------------------------------------------------------------------------------------------------

    def returned(self, process: Process, card: int, amounts: Amounts) -> bool:
        """Reduce its quota; return whether that made a sample worthwhile."""
        account = self._told(process, card, amounts)
        if account is None or amounts.lent >= account.lent:
            return False
        account.give_back(amounts.lent)
        self._entries.note(process, card)
        return True

    def told(self, process: Process, card: int, amounts: Amounts) -> bool:
        """Update its usage; return whether it claims more than the ledger has, which a sample must confirm."""
        account = self._told(process, card, amounts)
        return account is not None and account.claims_more

    def context_ended(self, process: Process, card: int, *, made: bool) -> None:
        """The context that `context` announced was made, or failed."""
        account = process.accounts.get(card)
        if account is not None:
            account.end_context(made=made)
            self._entries.note(process, card)

    def _told(self, process: Process, card: int, amounts: Amounts, *, is_old: bool = False) -> Account | None:
        """Apply a report; return the account, or None where there is no row for it or the process is gone.

        `is_old`: the report of a deferred request, which was applied when the request came.
        """
        if process.state in _OVER or not self._entries.has(process):  # perhaps since it waits
            return None
        account = process.accounts.get(card)
        if account is None:
            account = process.on(card)
            if not self._entries.note(process, card):
                del process.accounts[card]
                return None
        elif is_old:
            return account
        process.is_silent = False
        before = account.hidden
        account.tell(amounts)
        if account.hidden != before:
            self._entries.note(process, card)
        return account


def _short(  # noqa: PLR0913  all that decides
    budget: Budget, card: int, asker: Process, short: int, patience: Patience, *, again: bool
) -> Defer | Refused:
    """Defer the request if more may be free than is known; refuse it otherwise."""
    lent = asker.accounts[card].lent
    if patience:
        unused = sum(account.lent for _, account in holders(budget, card, asker)) if patience is Patience.ALL else 0
        if short <= unused + provable(budget, card):
            return Defer(lent)
    if patience is not Patience.PROOF:  # the final decision: counted once per call of a program
        budget.refused[card] += not again
    return Refused(lent)
