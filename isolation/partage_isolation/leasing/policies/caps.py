"""Strict caps: nobody gets more than its share, even where the card is idle otherwise. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from partage_isolation.leasing.policies import ceilings
from partage_isolation.leasing.policies.accounts import Account
from partage_isolation.leasing.policies.ceilings import WHOLE
from partage_isolation.leasing.policies.virtual_time import VirtualTime
from partage_isolation.leasing.timing import Timing


@dataclass(frozen=True, slots=True)
class Caps:
    """For those who sell time by the milli: what one gets does not depend on what others do."""

    timing: Timing = Timing()  # noqa: RUF009 - it is frozen
    is_metering: bool = True
    renews: bool = True
    order: VirtualTime = field(default=VirtualTime())

    def rank(self, account: Account, now: int, ahead_ns: int = 0) -> int:
        """By virtual time."""
        return self.order.rank(account, now, ahead_ns)

    def came(self, account: Account, least: int) -> None:
        """By virtual time."""
        self.order.came(account, least)

    def opens_at(self, account: Account, now: int) -> int:
        """When a turn fits below its share."""
        cap = _cap(account)
        if cap >= WHOLE:
            return now
        return ceilings.opens_at(account, cap, now, on_ns=self.timing.ceiling_on_ns, most=self._most)

    def run_ns(self, account: Account, now: int, *, is_contended: bool) -> int | None:
        """What its share leaves of a quantum."""
        cap = _cap(account)
        if cap >= WHOLE:
            return self.timing.quantum_ns if is_contended else None
        return min(self.timing.quantum_ns, ceilings.lasts_ns(account, cap, now, self._most))

    def may_end(self, wanter: Account, holder: Account, now: int) -> bool:
        """Where it is behind."""
        return self.order.may_end(wanter, holder, now)

    def charge(self, account: Account, held_ns: int, now: int) -> None:
        """To both clocks."""
        account.virtual += held_ns * WHOLE // (account.share or 1)
        ceilings.fill(account, _cap(account), now, self._most)
        account.room -= held_ns

    def ended(self, account: Account, now: int) -> None:
        """Nothing more."""

    @property
    def _most(self) -> int:
        return self.timing.ceiling_most_ns


def _cap(account: Account) -> int:
    """In milli; somebody without a share gets a turn now and then, so that nothing waits for ever."""
    return max(1, min(account.share, account.limit))
