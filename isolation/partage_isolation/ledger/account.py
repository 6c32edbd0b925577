"""What one process has of one card, what a sample of NVML changes in it, and the sums of it for a container.

Pure. The promise: at the moment of each applied sample, lent + unproved + overhead + reserved is at least what the card
showed for the process. A process that keeps to the protocol takes nothing beyond `lent` without asking. So the sum over
a container is never less than what it holds.

*Hidden* is managed memory: NVML shows it as no process's, so a sample is what NVML shows and what the process says to
have of that. A process that says too much is charged more; one that says too little has taken it past its library.

*Unproved* is what a process said to have freed. It stays charged until a sample that began later shows no more than the
rest explains. *Overhead* is what a sample shows beyond what the process says to use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from partage_isolation.ledger.pieces import ProcessId


class Amounts(NamedTuple):
    used: int
    lent: int
    changes: int = 0
    in_flight: int = 0
    returns: int = 0
    """How often it gave back."""
    hidden: int = 0
    """Of `used`: managed memory."""


class Charge(NamedTuple):
    asked: int = 0
    """Lent to programs, or freed by them without proof."""
    fixed: int = 0
    """What no program asked for: contexts and the like."""


NOTHING: Final = Charge()


class Charges:
    def __init__(self) -> None:
        self._each: dict[tuple[ProcessId, int], Charge] = {}
        self._sums: dict[int, Charge] = {}
        self._growth: dict[int, int] = {}

    def growth(self, card: int) -> int:
        """How often one of them was charged more than before: equal numbers mean that none was."""
        return self._growth.get(card, 0)

    def on(self, card: int) -> Charge:
        return self._sums.get(card, NOTHING)

    def count(self, who: ProcessId, card: int, now: Charge) -> None:
        place = who, card
        before = self._each.get(place, NOTHING)
        if now != NOTHING:
            self._each[place] = now
        else:
            self._each.pop(place, None)
        if sum(now) > sum(before):
            self._growth[card] = self.growth(card) + 1
        asked, fixed = self._sums.get(card, NOTHING)
        self._sums[card] = Charge(asked + now.asked - before.asked, fixed + now.fixed - before.fixed)


_CHANGES: Final = 1 << 32
"""They are counted modulo this."""
MOST_BYTES: Final = 1 << 60
"""Of what processes say; more is nonsense."""
FALLS_AFTER: Final = 3
"""Equal lower samples before overhead is believed to have become less."""


class Seen(NamedTuple):
    """An account as it was when a sample began."""

    lent: int
    doubted: int
    is_made: bool = False
    moved: int | None = 0
    hidden: int = 0


@dataclass(slots=True)
class Account:
    """One process on one card; bytes."""

    lent: int = 0
    unproved: int = 0
    overhead: int = 0
    reserved: int = 0
    """For a context that is being made, until a sample shows what it really takes."""

    used: int = 0
    """As the process says; only what it may hold by it is charged."""
    changes: int = 0
    in_flight: int = 0
    returns: int = 0
    is_dry: bool = False
    """It gave back all that it did not use, and no credit was lent to it since: what it takes it asks for."""
    doubted: int = 0
    """All that was ever added to `unproved`: tells what came after a sample began."""
    is_made: bool = False
    """The context that `reserved` is for is there."""
    falling_to: int = 0
    falls: int = 0
    judged_ns: int = 0
    """When the newest sample began that was applied."""
    moved: int | None = 0
    """Of what it uses so much is on the host now, and on no card; None: some of it is on its way."""
    hidden: int = 0
    """Of what it uses so much is managed memory, by its last word."""

    @property
    def fixed(self) -> int:
        """What no program asked for."""
        return self.overhead + self.reserved

    @property
    def total(self) -> int:
        return self.lent + self.unproved + self.overhead + self.reserved

    @property
    def charge(self) -> Charge:
        return Charge(self.lent + self.unproved, self.overhead + self.reserved)

    @property
    def claims_more(self) -> bool:
        """The process says that it holds what was never lent: the books were lost, or it lies."""
        return self.used > self.lent

    def tell(self, amounts: Amounts) -> None:
        if (amounts.changes - self.changes) % _CHANGES < _CHANGES // 2:  # else it was said before the last word
            self.hidden = min(amounts.hidden, amounts.used, MOST_BYTES)
        self.used, self.changes = min(amounts.used, MOST_BYTES), amounts.changes
        self.in_flight, self.returns = amounts.in_flight, amounts.returns

    def lend(self, asked: int, credit: int) -> None:
        """It may have so much, which it is about to use, and the credit, unasked."""
        self.lent, self.used = asked + credit, asked
        self.is_dry = self.is_dry and not credit

    def give_back(self, lent: int) -> None:
        """Only so much is still needed."""
        less, self.lent = self.lent - lent, lent
        self.doubt(less)

    def doubt(self, amount: int) -> None:
        """So much is said to be free."""
        self.unproved += amount
        self.doubted += amount

    def begin_anew(self) -> None:
        """Another program runs in the process: what the last one had is gone, once a sample shows it."""
        left, self.lent = self.lent + self.overhead + self.reserved, 0
        self.overhead = self.reserved = self.used = self.hidden = self.changes = self.in_flight = 0
        self.moved = 0
        self.is_made, self.is_dry, self.falls = False, False, 0
        self.doubt(left)

    def begin_context(self, size: int) -> None:
        """A context is about to be made. Said again before it is there, it is the same one."""
        if self.is_made:
            self.overhead, self.reserved = self.fixed, 0  # the one before, as far as is known
        self.reserved, self.is_made = max(self.reserved, size), False

    def end_context(self, *, made: bool) -> None:
        """It is there, or there will be none: what was kept for it is free once a sample agrees."""
        if made:
            self.is_made = True
        elif self.reserved:
            left, self.reserved = self.reserved, 0
            self.doubt(left)

    def dwindle(self, amount: int) -> bool:
        """The process is dead, and the card still shows so much of it; whether that is less than was charged."""
        if amount >= self.total:
            return False
        self.unproved, self.lent, self.overhead, self.reserved = amount, 0, 0, 0
        return True

    def leave(self, amount: int) -> None:
        """So much of what it held is others' now, and charged there."""
        self.lent, self.used = max(0, self.lent - amount), max(0, self.used - amount)

    def seen(self) -> Seen:
        return Seen(self.lent, self.doubted, self.is_made, self.moved, self.hidden)

    def is_overtaken(self, began_ns: int) -> bool:
        """By a sample that began later: what it proved free an older one may still show."""
        return began_ns < self.judged_ns

    def sampled(self, shown: int, began: Seen, *, exact_used: int | None) -> int | None:
        """Applies a sample: the card showed `shown` bytes.

        `exact_used`: what the process used all the while, where that is sure. Gives the size of a context where this
        sample shows one.
        """
        # One that was made before the sample began, and still is the last: else another program may run by now.
        learned = self._measure(shown, exact_used, is_made=began.is_made and self.is_made)
        rest = max(0, shown - self.fixed)
        since = self.doubted - began.doubted
        is_still = self.lent == began.lent and not since
        if is_still and self.claims_more:
            self.lent = max(self.lent, min(self.used, rest))
        base = self.lent if is_still else began.lent
        self.unproved = min(self.unproved, max(0, rest - base) + since)
        self.overhead += max(0, rest - max(base, self.lent) - self.unproved)
        return learned

    def unseen(self, began: Seen) -> bool:
        """A sample of a card that tells nothing: what the process said before it is believed; whether that is news.

        Its context takes what was kept for it, for good.
        """
        before = self.charge, self.lent
        since = self.doubted - began.doubted
        self.unproved = min(self.unproved, since)
        self.lent = max(self.lent, self.used)
        if began.is_made and self.is_made:
            self.overhead, self.reserved, self.is_made = self.overhead + self.reserved, 0, False
            return True  # it is measured now, as far as it ever will be
        return (self.charge, self.lent) != before

    def _measure(self, shown: int, exact_used: int | None, *, is_made: bool) -> int | None:
        """What is overhead; only where nothing else is uncertain, such as a context that is being made."""
        if self.reserved and not is_made:
            # Those before it are no more than all that is not the program's.
            self.overhead = min(self.overhead, shown if exact_used is None else max(0, shown - exact_used))
            return None
        if exact_used is None:
            exact_used = None if shown else 0  # where nothing is held there is no overhead either
        if exact_used is None:
            self.reserved = min(self.reserved, shown)  # a context is no more than all that is shown
            return None
        measured = max(0, shown - exact_used)
        if is_made:
            is_first = self.overhead == 0
            self.overhead, self.reserved, self.is_made, self.falls = measured, 0, False, 0
            return measured if is_first and measured else None
        self._overhead_is(measured)
        return None

    def _overhead_is(self, measured: int) -> None:
        if measured >= self.overhead:
            self.overhead, self.falls = measured, 0
            return
        self.falls = self.falls + 1 if measured == self.falling_to else 1
        self.falling_to = measured
        if self.falls >= FALLS_AFTER:
            self.overhead, self.falls = measured, 0
