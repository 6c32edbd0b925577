"""The interface of policies, the state they keep for a container, and the policy that meters nothing.

Pure. A policy has no state of its own: all state for a container is in a `Tally`, so that the same functions serve the
broker and the simulator. Ranks are compared on one card only, and only between containers that may run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from partage_isolation.timeslices.policies.bursts import Bursts


@dataclass(slots=True)
class Tally:
    """Accounting state of a container on a card; each policy uses the fields that it needs."""

    share: int
    """Guaranteed, in milli."""
    limit: int
    """Ceiling, in milli."""
    virtual: int = 0
    """Time held divided by share: nanoseconds of a whole card."""
    lead: int = 0
    """How far it was behind the others' virtual time when it last left, which is what they owed it."""
    room: int = 0
    """The ceiling's bucket at `room_at`."""
    room_at: int = 0
    quota: int = 0
    """Length of its next time slice."""
    run: int = 0
    """Time for which it has held the card in this time slice."""
    used: int = 0
    """Sum of `runs`."""
    runs: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    """Recent intervals in which it had the card."""
    asked_first: int | None = None
    rested_at: int | None = None
    """End of its last time slice, until it wants the card again."""
    bursts: Bursts = field(default_factory=Bursts)


class Policy(Protocol):
    @property
    def is_metering(self) -> bool:
        """If false, each container runs at any time."""
        ...

    @property
    def renews(self) -> bool:
        """A time slice that would go to its holder again is extended instead of being drained."""
        ...

    def rank(self, account: Tally, now: int, ahead_ns: int = 0) -> int:
        """The lowest rank runs next; computed as if the container had held the card for `ahead_ns` more."""
        ...

    def came(self, account: Tally, least: int) -> None:
        """The container was away and wants the card again; `least` is the others' virtual time."""
        ...

    def asks(self, account: Tally, now: int) -> None:
        """The container waits for the card; called once or more for each wait."""
        ...

    def opens_at(self, account: Tally, now: int) -> int:
        """When its ceiling lets it run; now or earlier if it may run already."""
        ...

    def run_ns(self, account: Tally, now: int, *, is_contended: bool) -> int | None:
        """How long it may run; None means until another container wants the card."""
        ...

    def may_end(self, wanter: Tally, holder: Tally, now: int) -> bool: ...

    def charge(self, account: Tally, held_ns: int, now: int) -> None:
        """Charge `held_ns` of holding the card until now; negative to refund time that was charged wrongly."""
        ...

    def ended(self, account: Tally, now: int, *, is_idle: bool) -> None:
        """Its time slice has ended and drained; `is_idle` if it gave the time slice back because it was idle."""
        ...


@dataclass(frozen=True, slots=True)
class FreeRun:
    """For users who want memory limits but no time limits."""

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
