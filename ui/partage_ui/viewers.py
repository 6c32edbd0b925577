"""Sessions: which viewers are signed in, for how long, and how many at once. Pure.

Only the browser has a session's key. Keys are looked up by their digest, so that the time of a lookup reveals nothing
about them. A person with too many sessions loses the oldest; nobody loses one because of another person.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import Struct

MOST: Final = 512
MOST_OF_ONE: Final = 8
MOST_STREAMS: Final = 128
MOST_STREAMS_OF_ONE: Final = 6
MOST_RIGHTS: Final = 256


class Person(Struct, frozen=True, kw_only=True):
    """A user, as the API server authenticated it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class Right(NamedTuple):
    verb: str
    resource: str
    namespace: str = ""
    """Empty: all namespaces."""


@dataclass(eq=False)
class Viewer:
    person: Person
    until: float
    streams: int = 0
    rights: dict[Right, tuple[bool, float]] = field(default_factory=dict[Right, tuple[bool, float]])
    """Each answer, and until when it is valid."""

    def remember(self, right: Right, *, is_granted: bool, until: float) -> None:
        self.rights.pop(right, None)
        while len(self.rights) >= MOST_RIGHTS:
            del self.rights[next(iter(self.rights))]
        self.rights[right] = (is_granted, until)


class Viewers:
    def __init__(self, *, clock: Callable[[], float], most: int = MOST) -> None:
        self._clock, self._most = clock, most
        self._found: dict[bytes, Viewer] = {}
        self.streams = 0

    def __len__(self) -> int:
        return len(self._found)

    def enter(self, person: Person, *, lasts_s: float) -> str | None:
        """The key of a new session; None while there are too many."""
        now = self._clock()
        self._found = {key: each for key, each in self._found.items() if each.until > now}
        own = [key for key, each in self._found.items() if each.person.username == person.username]
        for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            self._end(key)
        if len(self._found) >= self._most:
            return None
        new = secrets.token_urlsafe(32)
        self._found[_digest(new)] = Viewer(person, now + lasts_s)
        return new

    def of(self, key: str) -> Viewer | None:
        found = self._found.get(_digest(key))
        return found if found is not None and self.is_in(found) else None

    def is_in(self, viewer: Viewer) -> bool:
        return viewer.until > self._clock()

    def leave(self, key: str) -> None:
        self._end(_digest(key))

    def begin_stream(self, viewer: Viewer) -> bool:
        """Whether one more page may follow changes; if so, counts it."""
        if viewer.streams >= MOST_STREAMS_OF_ONE or self.streams >= MOST_STREAMS:
            return False
        viewer.streams += 1
        self.streams += 1
        return True

    def end_stream(self, viewer: Viewer) -> None:
        viewer.streams -= 1
        self.streams -= 1

    def _end(self, digest: bytes) -> None:
        found = self._found.pop(digest, None)
        if found is not None:
            found.until = float("-inf")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()
