"""What a fake API server can do that none should: single faults, and a weather that deals them out at random."""

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
    """Answers with a status, in the API server's words or with `body` as it is."""

    status: int
    reason: str = ""
    message: str = "told to"
    retry_after: str | None = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after_success: bool = False


@dataclass(frozen=True)
class Say:
    """Answers 200 with these bytes, whatever was asked."""

    body: bytes


@dataclass(frozen=True)
class Flood:
    """Answers 200 and goes on until the client has had enough."""


@dataclass(frozen=True)
class Hang:
    """Takes the request and answers only when `api.release()` says so."""

    after_success: bool = False
    """It is done at once, and only the answer is late."""


@dataclass(frozen=True)
class Drop:
    """Cuts the connection: before anything is done, or after all of it is."""

    after_success: bool = False


@dataclass(frozen=True)
class CutShort:
    """Does it, and cuts the connection in the middle of the answer."""


@dataclass(frozen=True)
class CutWatch:
    """Watches as asked, and breaks off after so many bytes, wherever that is."""

    after_bytes: int


@dataclass(frozen=True)
class Late:
    """Does it only after a while, however long the client waits for it: it may have given up by then."""

    seconds: float


Fault = Refuse | Say | Flood | Hang | Drop | CutShort | CutWatch | Late


class Weather(Protocol):
    """Asked about every request and every line that a watch is to be told."""

    def fault(self, asked: Asked) -> Fault | None: ...

    def disturbed(self, line: bytes) -> tuple[Sequence[bytes], bool]:
        """What is written instead, and whether this comes after the next line only."""
        ...


class Storm:
    """Faults of all kinds, dealt out by a seed; `strength` 0 is fair weather."""

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
