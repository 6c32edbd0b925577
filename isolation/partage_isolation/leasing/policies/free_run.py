"""No metering: everybody launches whenever he likes, and the card divides its time as it does. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from partage_isolation.leasing.policies.accounts import Account


@dataclass(frozen=True, slots=True)
class FreeRun:
    """For those who want memory held and time not."""

    is_metering: bool = False
    renews: bool = False

    def rank(self, account: Account, now: int, ahead_ns: int = 0) -> int:  # noqa: ARG002
        """All are equal."""
        return 0

    def came(self, account: Account, least: int) -> None:
        """Nothing to be said."""

    def opens_at(self, account: Account, now: int) -> int:  # noqa: ARG002
        """Always."""
        return now

    def run_ns(self, account: Account, now: int, *, is_contended: bool) -> int | None:  # noqa: ARG002
        """For ever."""
        return None

    def may_end(self, wanter: Account, holder: Account, now: int) -> bool:  # noqa: ARG002
        """There is no turn to be ended."""
        return False

    def charge(self, account: Account, held_ns: int, now: int) -> None:
        """Nothing is charged."""

    def ended(self, account: Account, now: int) -> None:
        """Nothing more."""
