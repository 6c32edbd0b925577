"""What is still to be told, about whom, and when it is due. Pure: times are what callers say.

About each there is one thing to tell at most, the latest; and there is time between two of them, so that one whose
reasons change with every try does not take the time of all others. It is bounded: beyond that nothing new is taken.
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
        """About whom something was told lately, when, and what is to be told next."""
        self._resting = 0
        self.dropped = 0
        """What will never be told."""

    def __len__(self) -> int:
        return len(self._ready) + self._resting

    def put(self, about: K, thing: T) -> None:
        """Replaces what waits about the same."""
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
        """The oldest that is due."""
        self._rest(now)
        if not self._ready:
            return None
        about, thing = self._ready.popitem(last=False)
        self._told[about] = (now, None)
        return about, thing

    def due(self, now: float) -> float | None:
        """When something can be taken; None where nothing waits."""
        self._rest(now)
        if self._ready:
            return now
        return next(iter(self._told.values()))[0] + self._every_s if self._resting else None

    def _rest(self, now: float) -> None:
        """Moves what has rested to what is ready."""
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
        """When it may be done again."""
        return self._used_until - self._ahead_s

    def done(self, now: float) -> None:
        self._used_until = max(now, self._used_until) + self._every_s
