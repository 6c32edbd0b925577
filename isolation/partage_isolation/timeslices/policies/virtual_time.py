"""Guaranteed shares by virtual time, with a ceiling on top, and strict caps in the same order.

Pure. Each container has a clock that advances while it holds the card, faster for smaller shares; the container whose
clock is furthest behind runs next. So excess is divided by share, no card is idle while a container wants it, and debts
never expire. A container that was idle returns with a head start of at most a credit. A share of 0 runs only while no
container with a share wants the card.

The ceiling is a token bucket that fills at the limit's rate and that held time empties. A container below its ceiling
runs for at least `on_ns`: shorter time slices cost more than they give. Debt stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from partage_isolation.timeslices.durations import Timing
from partage_isolation.timeslices.policies.policy import Tally

WHOLE = 1000
"""Milli of a card."""


def _fill(account: Tally, limit: int, now: int, most: int) -> int:
    if now > account.room_at:
        account.room = min(most, account.room + (now - account.room_at) * limit // WHOLE)
        account.room_at = now
    return account.room


def _opens_at(account: Tally, limit: int, now: int, *, on_ns: int, most: int) -> int:
    """When a time slice of that length fits."""
    missing = on_ns * (WHOLE - limit) // WHOLE - _fill(account, limit, now, most)
    return now if missing <= 0 else now - (-missing * WHOLE // limit)


def _lasts_ns(account: Tally, limit: int, now: int, most: int) -> int:
    """How long it may run from now on before the bucket is empty."""
    return max(0, _fill(account, limit, now, most)) * WHOLE // (WHOLE - limit)


_BEHIND_ALL = 1 << 80
"""More than any clock value."""


@dataclass(frozen=True, slots=True)
class VirtualTime:
    """The default policy."""

    timing: Timing = Timing()  # noqa: RUF009 - it is frozen
    is_metering: bool = True
    renews: bool = True

    def rank(self, account: Tally, now: int, ahead_ns: int = 0) -> int:  # noqa: ARG002
        virtual = account.virtual + ahead_ns * WHOLE // (account.share or 1)
        return virtual if account.share else virtual + _BEHIND_ALL

    def came(self, account: Tally, least: int) -> None:
        """Limit its head start to the credit, or to what it had when it left; debt stays."""
        account.virtual = max(account.virtual, least - max(self.timing.credit_ns, account.lead))

    def asks(self, account: Tally, now: int) -> None:
        pass

    def opens_at(self, account: Tally, now: int) -> int:
        """Immediately, or below a whole card when a time slice fits."""
        if account.limit >= WHOLE:
            return now
        on_ns = self.timing.ceiling_on_ns
        return _opens_at(account, account.limit, now, on_ns=on_ns, most=self._most)

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:
        """A quantum, or the part of it that the ceiling allows."""
        if account.limit >= WHOLE:
            return self.timing.quantum_ns if is_contended else None
        return min(self.timing.quantum_ns, _lasts_ns(account, account.limit, now, self._most))

    def may_end(self, wanter: Tally, holder: Tally, now: int) -> bool:
        return self.rank(wanter, now) < self.rank(holder, now)

    def charge(self, account: Tally, held_ns: int, now: int) -> None:
        account.virtual += held_ns * WHOLE // (account.share or 1)
        if account.limit < WHOLE:
            _fill(account, account.limit, now, self._most)
            account.room -= held_ns

    def ended(self, account: Tally, now: int, *, is_idle: bool) -> None:
        pass

    @property
    def _most(self) -> int:
        return self.timing.ceiling_most_ns


class Caps(VirtualTime):
    """For operators who sell time by the milli: a container's time does not depend on the others' load."""

    __slots__ = ()

    def opens_at(self, account: Tally, now: int) -> int:
        """When a time slice fits below its share."""
        cap = _cap(account)
        if cap >= WHOLE:
            return now
        return _opens_at(account, cap, now, on_ns=self.timing.ceiling_on_ns, most=self._most)

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:
        """The part of a quantum that its share allows."""
        cap = _cap(account)
        if cap >= WHOLE:
            return self.timing.quantum_ns if is_contended else None
        return min(self.timing.quantum_ns, _lasts_ns(account, cap, now, self._most))

    def charge(self, account: Tally, held_ns: int, now: int) -> None:
        account.virtual += held_ns * WHOLE // (account.share or 1)
        _fill(account, _cap(account), now, self._most)
        account.room -= held_ns


def _cap(account: Tally) -> int:
    """The cap in milli. A container without a share gets an occasional time slice, so that none starves."""
    return max(1, min(account.share, account.limit))
