"""What a policy decides. Pure.

A policy has no state of its own: all that it remembers of a container is in an `Account`, so that the same functions
serve the broker and the simulator. Ranks are compared on one card only, and only between those that may run.
"""

from __future__ import annotations

from typing import Protocol

from partage_isolation.leasing.policies.accounts import Account


class Policy(Protocol):
    """Of one card."""

    @property
    def is_metering(self) -> bool:
        """False: everybody runs whenever he likes."""
        ...

    @property
    def renews(self) -> bool:
        """A lease that would go to its holder again is lengthened instead of being drained."""
        ...

    def rank(self, account: Account, now: int, ahead_ns: int = 0) -> int:
        """Who has the least runs next; as if it had held the card for so long more."""
        ...

    def came(self, account: Account, least: int) -> None:
        """It was away and wants the card again; `least` is how far the others are, in virtual time."""
        ...

    def opens_at(self, account: Account, now: int) -> int:
        """When its ceiling lets it run; not after now, where it may."""
        ...

    def run_ns(self, account: Account, now: int, *, is_contended: bool) -> int | None:
        """For how long it may run; None: until somebody else wants the card."""
        ...

    def may_end(self, wanter: Account, holder: Account, now: int) -> bool:
        """Whether one who wakes up may end the other's run before its time."""
        ...

    def charge(self, account: Account, held_ns: int, now: int) -> None:
        """It held the card for so long until now; negative: so much was charged wrongly."""
        ...

    def ended(self, account: Account, now: int) -> None:
        """Its lease is over, and all of it is charged."""
        ...
