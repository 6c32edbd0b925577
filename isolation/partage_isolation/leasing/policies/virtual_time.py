"""Guarantee by virtual time, and a ceiling beside it. Pure.

Each container has a clock that runs, while it holds the card, as much faster as its share is smaller; whoever's clock
is furthest behind runs next. So excess is divided by share, nothing is left idle while somebody wants it, and debts
are kept for ever. Who comes back from idleness is ahead of the others by a credit at most. A share of 0 runs only
while nobody with a share wants the card.
"""

from __future__ import annotations

from dataclasses import dataclass

from partage_isolation.leasing.policies import ceilings
from partage_isolation.leasing.policies.accounts import Account
from partage_isolation.leasing.policies.ceilings import WHOLE
from partage_isolation.leasing.timing import Timing

_BEHIND_ALL = 1 << 80
"""More than any clock shows."""


@dataclass(frozen=True, slots=True)
class VirtualTime:
    """What cards have unless another policy is asked for."""

    timing: Timing = Timing()  # noqa: RUF009 - it is frozen
    is_metering: bool = True
    renews: bool = True

    def rank(self, account: Account, now: int, ahead_ns: int = 0) -> int:  # noqa: ARG002
        """Its clock."""
        virtual = account.virtual + ahead_ns * WHOLE // (account.share or 1)
        return virtual if account.share else virtual + _BEHIND_ALL

    def came(self, account: Account, least: int) -> None:
        """No more than the credit ahead, or than it was when it went; debt stays."""
        account.virtual = max(account.virtual, least - max(self.timing.credit_ns, account.lead))

    def opens_at(self, account: Account, now: int) -> int:
        """At once, below a whole card when a turn fits."""
        if account.limit >= WHOLE:
            return now
        on_ns = self.timing.ceiling_on_ns
        return ceilings.opens_at(account, account.limit, now, on_ns=on_ns, most=self._most)

    def run_ns(self, account: Account, now: int, *, is_contended: bool) -> int | None:
        """A quantum, or what the ceiling leaves of it."""
        if account.limit >= WHOLE:
            return self.timing.quantum_ns if is_contended else None
        return min(self.timing.quantum_ns, ceilings.lasts_ns(account, account.limit, now, self._most))

    def may_end(self, wanter: Account, holder: Account, now: int) -> bool:
        """Where it is behind."""
        return self.rank(wanter, now) < self.rank(holder, now)

    def charge(self, account: Account, held_ns: int, now: int) -> None:
        """To both clocks."""
        account.virtual += held_ns * WHOLE // (account.share or 1)
        if account.limit < WHOLE:
            ceilings.fill(account, account.limit, now, self._most)
            account.room -= held_ns

    def ended(self, account: Account, now: int) -> None:
        """Nothing more."""

    @property
    def _most(self) -> int:
        return self.timing.ceiling_most_ns
