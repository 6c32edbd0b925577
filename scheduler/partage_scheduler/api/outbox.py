"""Queue of messages by subject, and when each is due. Pure: callers pass the time.

Each subject has at most one message, the latest, and an interval between two of them, so that a subject whose messages
keep changing does not starve the others. Above a bound no new subject is accepted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Outbox(Generic[K, T]):
    def __init__(self, *, most: int, every_s: float) -> None:
        self._most, self._every_s = most, every_s
        self._ready: OrderedDict[K, T] = OrderedDict()
        self._told: OrderedDict[K, tuple[float, T | None]] = OrderedDict()
        """Subjects with a recent message: when it was sent, and the next one."""
        self._resting = 0
        self.dropped = 0
        """Number of messages rejected for lack of space."""

    def __len__(self) -> int:
        return len(self._ready) + self._resting

    def put(self, about: K, thing: T) -> None:
        """Replaces a queued message about the same subject."""
        self.withdraw(about)
        if len(self) >= self._most:
            self.dropped += 1
        elif (told := self._told.get(about)) is None:
            self._ready[about] = thing
        else:
            self._told[about] = (told[0], thing)
            self._resting += 1

    def withdraw(self, about: K) -> None:
        if self._ready.pop(about, None) is None and (told := self._told.get(about)) is not None:
            self._resting -= told[1] is not None
            self._told[about] = (told[0], None)

    def take(self, now: float) -> tuple[K, T] | None:
        """The oldest message that is due."""
        self._rest(now)
        if not self._ready:
            return None
        about, thing = self._ready.popitem(last=False)
        self._told[about] = (now, None)
        return about, thing

    def due(self, now: float) -> float | None:
        """When a message can be taken; None if none is queued."""
        self._rest(now)
        if self._ready:
            return now
        return next(iter(self._told.values()))[0] + self._every_s if self._resting else None

    def _rest(self, now: float) -> None:
        """Makes messages ready whose interval has passed."""
        while self._told:
            about, (told_at, thing) = next(iter(self._told.items()))
            if told_at + self._every_s > now:
                return
            del self._told[about]
            if thing is not None:
                self._ready[about] = thing
                self._resting -= 1


class Pace:
    def __init__(self, a_second: float, *, at_once: int) -> None:
        self._every_s, self._ahead_s = 1 / a_second, (at_once - 1) / a_second
        self._used_until = float("-inf")

    @property
    def due(self) -> float:
        """When the next one may be sent."""
        return self._used_until - self._ahead_s

    def done(self, now: float) -> None:
        self._used_until = max(now, self._used_until) + self._every_s
