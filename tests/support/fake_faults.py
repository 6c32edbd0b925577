"""Faults of a fake API server: single ones, and a weather that injects them at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def verb(self) -> str:
        return "WATCH" if "watch" in self.query else self.method


@dataclass(frozen=True)
class Refuse:
    """Answers with a status and an API server's error object, or with `body` verbatim."""

    status: int
    reason: str = ""
    message: str = "told to"
    retry_after: str | None = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after_success: bool = False


@dataclass(frozen=True)
class Say:
    """Answers 200 with these bytes, regardless of the request."""

    body: bytes


@dataclass(frozen=True)
class Flood:
    """Answers 200 and sends until the client closes."""


@dataclass(frozen=True)
class Hang:
    """Accepts the request and answers only after `api.release()`."""

    after_success: bool = False
    """The request takes effect at once, and only the answer is delayed."""


@dataclass(frozen=True)
class Drop:
    """Cuts the connection, before the request takes effect or after it."""

    after_success: bool = False


@dataclass(frozen=True)
class CutShort:
    """Does the request, and cuts the connection in the middle of the answer."""


@dataclass(frozen=True)
class CutWatch:
    """Watches normally, and cuts the connection after this number of bytes, even within a line."""

    after_bytes: int


@dataclass(frozen=True)
class Late:
    """Does the request after a delay, even if the client has given up by then."""

    seconds: float


Fault = Refuse | Say | Flood | Hang | Drop | CutShort | CutWatch | Late


class Weather(Protocol):
    """Decides faults for every request and every line of a watch."""

    def fault(self, asked: Asked) -> Fault | None: ...

    def disturbed(self, line: bytes) -> tuple[Sequence[bytes], bool]:
        """The lines to write instead, and whether they come only after the next line."""
        ...


class Storm:
    """Random faults of all kinds from a seed; `strength` 0 causes none."""

    def __init__(self, seed: int, *, strength: float, twice: float = 0.1, later: float = 0.1) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._twice, self._later = twice, later
        self.strength = strength

    def fault(self, asked: Asked) -> Fault | None:
        if self._random.random() >= self.strength:
            return None
        return self._random.choice(self._of_watches() if asked.verb == "WATCH" else self._of_calls(asked.verb))

    def disturbed(self, line: bytes) -> tuple[Sequence[bytes], bool]:
        lines = (line, line) if self._random.random() < self._twice * bool(self.strength) else (line,)
        return lines, self._random.random() < self._later * bool(self.strength)

    def _of_watches(self) -> Sequence[Fault]:
        cut = CutWatch(self._random.randrange(4000))
        return (cut, cut, cut, Refuse(410, "Expired"), Refuse(500), Refuse(429, retry_after="0"), Drop())

    def _of_calls(self, verb: str) -> Sequence[Fault]:
        plain: Sequence[Fault] = (Refuse(500), Refuse(503), Refuse(429, "TooManyRequests"), Drop())
        if verb == "GET":
            return (*plain, CutShort())
        done = (
            Drop(after_success=True),
            Refuse(504, "Timeout", after_success=True),
            CutShort(),
            Hang(after_success=True),
        )
        return (*plain, *done, Refuse(409, "Conflict"), Late(self._random.random() / 4), *[Late(0.4)] * 4)
