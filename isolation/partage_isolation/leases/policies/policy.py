"""What a policy decides, what it remembers of a container, and the policy that meters nothing.

Pure. A policy has no state of its own: all that it remembers of a container is in an `Tally`, so that the same
functions serve the broker and the simulator. Ranks are compared on one card only, and only between those that may run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from partage_isolation.leases.policies.bursts import Bursts


@dataclass(slots=True)
class Tally:
    """What these mean is the policy's."""

    share: int
    """In milli; guaranteed."""
    limit: int
    """In milli; the ceiling."""
    virtual: int = 0
    """Time held, divided by share: nanoseconds of a whole card."""
    lead: int = 0
    """How far the others' virtual time was ahead when it last went away: what they owed it then."""
    room: int = 0
    """What the ceiling leaves at `room_at`."""
    room_at: int = 0
    quota: int = 0
    """How long its next lease may be."""
    run: int = 0
    """How long it has held the card in this lease."""
    used: int = 0
    """The sum of `runs`."""
    runs: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    """From when to when it had the card, of late."""
    asked_first: int | None = None
    rested_at: int | None = None
    """When its lease ended, until it wants the card again."""
    bursts: Bursts = field(default_factory=Bursts)


class Policy(Protocol):
    @property
    def is_metering(self) -> bool:
        """False: each container runs whenever it likes."""
        ...

    @property
    def renews(self) -> bool:
        """A lease that would go to its holder again is lengthened instead of being drained."""
        ...

    def rank(self, account: Tally, now: int, ahead_ns: int = 0) -> int:
        """Who has the least runs next; as if it had held the card for so long more."""
        ...

    def came(self, account: Tally, least: int) -> None:
        """It was away and wants the card again; `least` is how far the others are, in virtual time."""
        ...

    def asks(self, account: Tally, now: int) -> None:
        """It waits for the card; said once or more for each wait."""
        ...

    def opens_at(self, account: Tally, now: int) -> int:
        """When its ceiling lets it run; not after now, where it may."""
        ...

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:
        """For how long it may run; None: until another container wants the card."""
        ...

    def may_end(self, wanter: Tally, holder: Tally, now: int) -> bool: ...

    def charge(self, account: Tally, held_ns: int, now: int) -> None:
        """It held the card for so long until now; negative: so much was charged wrongly."""
        ...

    def ended(self, account: Tally, now: int, *, is_idle: bool) -> None:
        """Its lease is over and its work done; idle: it gave the lease back since it had no use for it."""
        ...


@dataclass(frozen=True, slots=True)
class FreeRun:
    """For those who want memory held and time not."""

    is_metering: bool = False
    renews: bool = False

    def rank(self, account: Tally, now: int, ahead_ns: int = 0) -> int:  # noqa: ARG002
        return 0

    def came(self, account: Tally, least: int) -> None:
        pass

    def asks(self, account: Tally, now: int) -> None:
        pass

    def opens_at(self, account: Tally, now: int) -> int:  # noqa: ARG002
        return now

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:  # noqa: ARG002
        return None

    def may_end(self, wanter: Tally, holder: Tally, now: int) -> bool:  # noqa: ARG002
        return False

    def charge(self, account: Tally, held_ns: int, now: int) -> None:
        pass

    def ended(self, account: Tally, now: int, *, is_idle: bool) -> None:
        pass
