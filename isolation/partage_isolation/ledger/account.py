"""Account of one process on one card, how NVML samples correct it, and a container's sums.

Pure. The invariant: at each applied sample, lent + unproved + overhead + reserved is at least what the card showed for
the process. A process that keeps to the protocol takes nothing beyond `lent` without asking. So the sum over a
container is never less than what it holds.

*Hidden* is managed memory: NVML attributes it to no process, so a sample is what NVML shows plus the managed memory
that the process reports. A process that reports too much is charged more; one that reports too little has bypassed its
library.

*Unproved* is what a process reported as freed. It stays charged until a sample that began later shows no more than the
other amounts explain. *Overhead* is what a sample shows beyond the process's reported usage.
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
    """Number of times it gave memory back."""
    hidden: int = 0
    """Managed memory, as part of `used`."""


class Charge(NamedTuple):
    asked: int = 0
    """Lent to programs, or freed by them without proof."""
    fixed: int = 0
    """Memory that no program requested: contexts and the like."""


NOTHING: Final = Charge()


class Charges:
    def __init__(self) -> None:
        self._each: dict[tuple[ProcessId, int], Charge] = {}
        self._sums: dict[int, Charge] = {}
        self._growth: dict[int, int] = {}

    def growth(self, card: int) -> int:
        """Number of increases of any process's charge: equal numbers mean that no charge has grown."""
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
"""Changes are counted modulo this."""
MOST_BYTES: Final = 1 << 60
"""Upper bound of amounts that processes report."""
FALLS_AFTER: Final = 3
"""Number of equal lower samples after which overhead is lowered."""


class Seen(NamedTuple):
    """Snapshot of an account when a sample began."""

    lent: int
    doubted: int
    is_made: bool = False
    moved: int | None = 0
    hidden: int = 0


@dataclass(slots=True)
class Account:
    """Account of one process on one card, in bytes."""

    lent: int = 0
    unproved: int = 0
    overhead: int = 0
    reserved: int = 0
    """For a context that is being made, until a sample shows its real size."""

    used: int = 0
    """As the process reports it; only what it may hold by this is charged."""
    changes: int = 0
    in_flight: int = 0
    returns: int = 0
    is_dry: bool = False
    """It gave back all unused credit and has been lent none since: it asks for all that it takes."""
    doubted: int = 0
    """Total ever added to `unproved`: the difference shows what was added after a sample began."""
    is_made: bool = False
    """The context that `reserved` is for has been made."""
    falling_to: int = 0
    falls: int = 0
    judged_ns: int = 0
    """When the newest applied sample began."""
    moved: int | None = 0
    """Part of its usage that is on the host now, on no card; None while some of it is moving."""
    hidden: int = 0
    """Part of its usage that is managed memory, as last reported."""

    @property
    def fixed(self) -> int:
        """Memory that no program requested."""
        return self.overhead + self.reserved

    @property
    def total(self) -> int:
        return self.lent + self.unproved + self.overhead + self.reserved

    @property
    def charge(self) -> Charge:
        return Charge(self.lent + self.unproved, self.overhead + self.reserved)

    @property
    def claims_more(self) -> bool:
        """The process reports more than was ever lent: the ledger was lost, or it lies."""
        return self.used > self.lent

    def tell(self, amounts: Amounts) -> None:
        if (amounts.changes - self.changes) % _CHANGES < _CHANGES // 2:  # else older than the last report
            self.hidden, self.changes = min(amounts.hidden, amounts.used, MOST_BYTES), amounts.changes
        self.used = min(amounts.used, MOST_BYTES)
        self.in_flight, self.returns = amounts.in_flight, amounts.returns

    def lend(self, asked: int, credit: int) -> None:
        """Lend what it asked for and is about to use, and unrequested credit."""
        self.lent, self.used = asked + credit, asked
        self.is_dry = self.is_dry and not credit

    def give_back(self, lent: int) -> None:
        """Keep only `lent`; the rest becomes unproved."""
        less, self.lent = self.lent - lent, lent
        self.doubt(less)

    def doubt(self, amount: int) -> None:
        """Add an amount that was reported as freed."""
        self.unproved += amount
        self.doubted += amount

    def begin_anew(self) -> None:
        """Another program runs in the process: the previous program's memory is gone once a sample shows that."""
        left, self.lent = self.lent + self.overhead + self.reserved, 0
        self.overhead = self.reserved = self.used = self.hidden = self.changes = self.in_flight = 0
        self.moved = 0
        self.is_made, self.is_dry, self.falls = False, False, 0
        self.doubt(left)

    def begin_context(self, size: int) -> None:
        """Reserve memory for a context. A repeated call before the context is there means the same one."""
        if self.is_made:
            self.overhead, self.reserved = self.fixed, 0  # the previous context, as far as is known
        self.reserved, self.is_made = max(self.reserved, size), False

    def end_context(self, *, made: bool) -> None:
        """The context was made, or failed: then its reservation is free once a sample agrees."""
        if made:
            self.is_made = True
        elif self.reserved:
            left, self.reserved = self.reserved, 0
            self.doubt(left)

    def dwindle(self, amount: int) -> bool:
        """Reduce a dead process's charge to what the card still shows; return whether it was reduced."""
        if amount >= self.total:
            return False
        self.unproved, self.lent, self.overhead, self.reserved = amount, 0, 0, 0
        return True

    def leave(self, amount: int) -> None:
        """Remove memory that is now charged to others."""
        self.lent, self.used = max(0, self.lent - amount), max(0, self.used - amount)

    def seen(self) -> Seen:
        return Seen(self.lent, self.doubted, self.is_made, self.moved, self.hidden)

    def is_overtaken(self, began_ns: int) -> bool:
        """A sample that began later was applied: an older one may still show what that one proved free."""
        return began_ns < self.judged_ns

    def sampled(self, shown: int, began: Seen, *, exact_used: int | None) -> int | None:
        """Apply a sample in which the card showed `shown` bytes.

        `exact_used` is the process's usage throughout the sample, where known. Returns the size of a context if this
        sample shows it.
        """
        # Made before the sample began and still the last one; otherwise another program may run by now.
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
        """Apply a sample of a blind card by trusting earlier reports; return whether that changed anything.

        Its context is permanently charged the size that was reserved.
        """
        before = self.charge, self.lent
        since = self.doubted - began.doubted
        self.unproved = min(self.unproved, since)
        self.lent = max(self.lent, self.used)
        if began.is_made and self.is_made:
            self.overhead, self.reserved, self.is_made = self.overhead + self.reserved, 0, False
            return True  # counts as measured: no sample will show more
        return (self.charge, self.lent) != before

    def _measure(self, shown: int, exact_used: int | None, *, is_made: bool) -> int | None:
        """Determine the overhead, only where nothing else is uncertain, such as a context that is being made."""
        if self.reserved and not is_made:
            # Earlier overhead is at most all that is not the program's.
            self.overhead = min(self.overhead, shown if exact_used is None else max(0, shown - exact_used))
            return None
        if exact_used is None:
            exact_used = None if shown else 0  # no memory means no overhead either
        if exact_used is None:
            self.reserved = min(self.reserved, shown)  # a context is at most all that is shown
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
