"""Applies NVML samples to the ledger: confirms freed memory, releases dead processes, measures overhead.

A sample of a blind card shows nothing. There a process's own reports are trusted, a context is charged the usual size,
and a dead process is released some time after the kernel reported its exit: the kernel closes its files before that.

No sample attributes managed memory to a process. The kernel unmaps it, which frees it, before it closes a process's
files, and NVML lists the process until they are closed: a dead process that is listed still counts with all of it.

Pure. A sample has three moments: it begins (`begin`), NVML is called, and its figures are applied (`apply`). It judges
only what was reported before it began. Samples may overlap, and an older one may arrive after a later one: then it
judges only processes that are known to have changed nothing throughout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.ledger.account import MOST_BYTES, Account, Amounts, Seen
from partage_isolation.ledger.budget import SPEAKING, Budget, Process, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.pieces import ProcessId
from partage_plugins.api.names import CardId

SETTLE_NS: Final = 1_000_000_000
"""Time that a driver may need to free a process's memory after its files are closed; usually milliseconds."""


@dataclass(frozen=True)
class Beginning:
    card: CardId
    began_ns: int
    seen: Mapping[ProcessId, Seen]


@dataclass(frozen=True)
class Shown:
    """NVML's figures, with related information from other sources."""

    processes: Mapping[int, int | None]
    """Bytes by pid; None: the driver does not report them."""
    starts: Mapping[int, int]
    """Start times of live processes; no entry for others."""
    exact: Mapping[ProcessId, int] = field(default_factory=dict[ProcessId, int])
    """A process's usage throughout the sample, where known."""

    def of(self, process: Process) -> int | None:
        """Bytes of that process, excluding another that reused its pid; None where unknown."""
        if self.starts.get(process.pid, process.start) != process.start:
            return 0
        return self.processes.get(process.pid, 0)


def begin(ledger: Ledger, card: CardId, now_ns: int) -> Beginning:
    return Beginning(card, now_ns, {process.id: account.seen() for _, _, process, account in ledger.on_card(card)})


def apply(ledger: Ledger, beginning: Beginning, shown: Shown) -> tuple[int, ...]:
    """Apply a sample's figures; return the sizes of contexts that it revealed."""
    return tuple(size for sizes in applying(ledger, beginning, shown) for size in sizes)


def applying(ledger: Ledger, beginning: Beginning, shown: Shown) -> Iterator[tuple[int, ...]]:
    """Like `apply`, but one process at a time: other events may occur in between."""
    for where, _, seen in _judged(ledger, beginning):
        yield _applied(ledger, where, beginning, shown, seen)


def apply_blind(ledger: Ledger, beginning: Beginning) -> None:
    """Apply a sample without figures, of a card that never provides any."""
    for _ in applying_blind(ledger, beginning):
        pass


def applying_blind(ledger: Ledger, beginning: Beginning) -> Iterator[None]:
    """Like `apply_blind`, but one process at a time."""
    for (budget, card, process), account, seen in _judged(ledger, beginning):
        if process.state is State.DEAD and process.died_ns + SETTLE_NS <= beginning.began_ns:
            ledger.lives.absent(budget, card, process)
        elif process.state in SPEAKING and account.unseen(seen):
            ledger.entries.note(process, card)
        yield


_Where = tuple[Budget, int, Process]


def _judged(ledger: Ledger, beginning: Beginning) -> Iterator[tuple[_Where, Account, Seen]]:
    """Accounts that existed when the sample began and still exist, each checked when it is reached."""
    for budget, card, process, account in list(ledger.on_card(beginning.card)):
        seen = beginning.seen.get(process.id)
        if seen is not None and process.accounts.get(card) is account and ledger.entries.has(process):
            yield (budget, card, process), account, seen


def _applied(ledger: Ledger, where: _Where, beginning: Beginning, shown: Shown, seen: Seen) -> tuple[int, ...]:
    budget, card, process = where
    account, amount = process.accounts[card], shown.of(process)
    if amount is None:
        return ()
    if process.state is State.DEAD:
        if process.died_ns <= beginning.began_ns:
            _left_behind(ledger, where, amount + account.hidden if amount else 0)
        return ()
    if budget.is_away or account.moved is None or account.moved != seen.moved:
        return ()
    hidden = min(max(account.hidden, seen.hidden), budget.cards[card].most_memory)
    amount = min(amount + account.moved + hidden, MOST_BYTES)
    exact_used = shown.exact.get(process.id) if account.hidden == seen.hidden else None
    if exact_used is None and account.is_overtaken(beginning.began_ns):
        return ()
    account.judged_ns = max(account.judged_ns, beginning.began_ns)
    before = account.charge, account.lent
    size = account.sampled(amount, seen, exact_used=exact_used)
    if (account.charge, account.lent) != before:
        ledger.entries.note(process, card)
    if process.state is State.FOUND and not account.total:
        ledger.lives.absent(budget, card, process)
    return () if size is None else (size,)


def _left_behind(ledger: Ledger, where: _Where, amount: int) -> None:
    """The driver still holds this much of a dead process, which takes no more."""
    budget, card, process = where
    if not amount:
        ledger.lives.absent(budget, card, process)
    elif process.accounts[card].dwindle(amount):
        ledger.entries.note(process, card)


def exact_used(before: Amounts | None, after: Amounts | None) -> int | None:
    """A process's usage between two reports; None where it changed or was about to."""
    if before is None or after is None or before.in_flight or after.in_flight or before.changes != after.changes:
        return None
    return after.used if (before.used, before.hidden) == (after.used, after.hidden) else None


_LAST_SIZES: Final = 32
_LOW: Final = 4
"""Quartile, as a divisor: one in this many sizes is smaller."""


class ContextSizes:
    """Usual minimum size of a context, by card model: the lower quartile of the last ones.

    A program that loads all its code at once has a large context. If that size were assumed for the next ones, small
    slices would have room for none.
    """

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        """`known` is from an earlier broker."""
        self._last = {model: deque((size,), _LAST_SIZES) for model, size in (known or {}).items()}
        self._models: dict[CardId, str] = {}

    def is_model(self, card: CardId, model: str) -> None:
        self._models[card] = model

    def model_of(self, card: CardId) -> str:
        return self._models.get(card, str(card))

    def size(self, card: CardId) -> int | None:
        return self._usual(self.model_of(card))

    def learned(self, card: CardId, size: int) -> bool:
        """Add a measured size; return whether the usual size changed."""
        model = self.model_of(card)
        before = self._usual(model)
        self._last.setdefault(model, deque(maxlen=_LAST_SIZES)).append(size)
        return self._usual(model) != before

    @property
    def known(self) -> Mapping[str, int]:
        return {model: _low(sizes) for model, sizes in self._last.items()}

    def _usual(self, model: str) -> int | None:
        sizes = self._last.get(model)
        return None if sizes is None else _low(sizes)


def _low(sizes: Collection[int]) -> int:
    return sorted(sizes)[len(sizes) // _LOW]
