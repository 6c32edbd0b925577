"""The token policy that Gemini published, for comparison. Pure.

A token lasts a quota: the mean of the last quota and the predicted burst, within bounds; the basic quota if no burst is
known. Usage within the window decides the order. A container at its limit gets no token; the last token before may take
it above. Containers below their share come first, by how far they are below it, then by least usage; one without usage
is served immediately. A token that its holder overran counts in full, as does work that ends after it.

A token is given back when its holder is idle, and not revoked before. Gemini itself then keeps it until its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from partage_isolation.timeslices.durations import MS
from partage_isolation.timeslices.policies.policy import Tally
from partage_isolation.timeslices.policies.virtual_time import WHOLE

_ONE: Final = 1 << 40
"""A used-up share, as a rank."""


@dataclass(frozen=True, slots=True)
class Gemini:
    """Defaults are the parameters that its authors published; KubeShare starts it with 300, 20 and 10 000 ms."""

    quota_ns: int = 250 * MS
    least_ns: int = 100 * MS
    window_ns: int = 10_000 * MS
    is_metering: bool = True
    renews: bool = False

    def rank(self, account: Tally, now: int, ahead_ns: int = 0) -> int:
        used = self.used(account, now) + ahead_ns
        due = account.share * self._counted(account, now) // WHOLE
        if not used:
            return -1
        return used * _ONE // due if used < due else _ONE + used

    def came(self, account: Tally, least: int) -> None:
        pass

    def asks(self, account: Tally, now: int) -> None:
        """End the container's pause, and set its next quota from all that is known until now."""
        if account.asked_first is None:
            account.asked_first = now
        if account.rested_at is None:
            return
        account.bursts.paused(account.rested_at, now)
        account.rested_at = None
        expected = account.bursts.expected_ns(now)
        account.quota = self._bounded(account, (expected + self._quota(account)) // 2 if expected else self.quota_ns)

    def opens_at(self, account: Tally, now: int) -> int:
        """When enough usage has left the window, or a window that is still young has grown enough."""
        used = self.used(account, now)
        if account.limit >= WHOLE or not used:
            return now
        over = used - account.limit * self.window_ns // WHOLE
        if over < 0:
            since = now - self._counted(account, now)
            return max(now, since + used * WHOLE // account.limit + 1)
        for start, end in account.runs:
            over -= end - max(start, now - self.window_ns)
            if over < 0:
                return max(now + 1, end + self.window_ns + 1)
        return now + self.least_ns

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:  # noqa: ARG002
        self.asks(account, now)  # a card of a gang may be granted without a wait
        return self._quota(account)

    def may_end(self, wanter: Tally, holder: Tally, now: int) -> bool:  # noqa: ARG002
        return False

    def charge(self, account: Tally, held_ns: int, now: int) -> None:
        if account.rested_at is None or not account.runs:
            account.run += held_ns
            return
        start, end = account.runs.pop()
        later = max(start, min(now, end + held_ns))
        account.runs.append((start, later))
        account.used += later - end

    def ended(self, account: Tally, now: int, *, is_idle: bool) -> None:
        """Add the held time to the window, and to the bursts that determine the next quota."""
        held, account.run = account.run, 0
        if held > 0:
            account.runs.append((now - held, now))
            account.used += held
        if is_idle:
            account.bursts.ended(now - held, now)
        else:
            account.bursts.cut_off()
        account.rested_at = now

    def used(self, account: Tally, now: int) -> int:
        """How long the container had the card within the window."""
        begins = now - self.window_ns
        while account.runs and account.runs[0][1] <= begins:
            start, end = account.runs.popleft()
            account.used -= end - start
        outside = max(0, begins - account.runs[0][0]) if account.runs else 0
        return account.used - outside + account.run

    def _counted(self, account: Tally, now: int) -> int:
        """The window, or the container's age if that is less."""
        return self.window_ns if account.asked_first is None else min(self.window_ns, now - account.asked_first)

    def _quota(self, account: Tally) -> int:
        return self._bounded(account, account.quota or self.quota_ns)

    def _bounded(self, account: Tally, quota: int) -> int:
        return min(account.limit * self.window_ns // WHOLE, max(self.least_ns, quota))
