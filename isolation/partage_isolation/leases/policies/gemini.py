"""The token policy that Gemini published, at its default parameters, for comparison. Pure.

A token lasts a quota of 250 ms at first, then the mean of the last quota and of what was really held, 100 ms at least.
In a window of 10 s no container gets more than its limit; those below their share come first, by how far they are below
it, then by who used least. A token is given back when its holder is idle, and not taken before.
"""

from __future__ import annotations

from dataclasses import dataclass

from partage_isolation.leases.durations import MS
from partage_isolation.leases.policies.policy import Tally
from partage_isolation.leases.policies.virtual_time import WHOLE

_ONE = 1 << 40
"""A used-up share, as a rank."""


@dataclass(frozen=True, slots=True)
class Gemini:
    quota_ns: int = 250 * MS
    least_ns: int = 100 * MS
    window_ns: int = 10_000 * MS
    is_metering: bool = True
    renews: bool = False

    def rank(self, account: Tally, now: int, ahead_ns: int = 0) -> int:
        used = self._used(account, now) + ahead_ns
        due = account.share * self.window_ns // WHOLE
        return used * _ONE // due if used < due else _ONE + used

    def came(self, account: Tally, least: int) -> None:
        pass

    def opens_at(self, account: Tally, now: int) -> int:
        """When enough of what it used has left the window."""
        over = self._used(account, now) - account.limit * self.window_ns // WHOLE
        if account.limit >= WHOLE or over < 0:
            return now
        for end, held in account.runs:
            over -= held
            if over < 0:
                return max(now + 1, end + self.window_ns + 1)
        return now + self.least_ns

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:  # noqa: ARG002
        return account.quota or self.quota_ns

    def may_end(self, wanter: Tally, holder: Tally, now: int) -> bool:  # noqa: ARG002
        return False

    def charge(self, account: Tally, held_ns: int, now: int) -> None:  # noqa: ARG002
        account.run += held_ns

    def ended(self, account: Tally, now: int) -> None:
        """What was held goes into the window, and into the next quota."""
        if account.run > 0:
            account.runs.append((now, account.run))
            account.used += account.run
        most = max(self.least_ns, account.limit * self.window_ns // WHOLE)
        quota = (account.run + (account.quota or self.quota_ns)) // 2
        account.quota, account.run = min(most, max(self.least_ns, quota)), 0

    def _used(self, account: Tally, now: int) -> int:
        while account.runs and account.runs[0][0] <= now - self.window_ns:
            account.used -= account.runs.popleft()[1]
        return account.used + account.run
