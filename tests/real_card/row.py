"""One question to a card: its program, the expected answer, its cost, and its judge. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

Facts = Mapping[str, Any]
"""A program's answer, decoded from JSON."""
ABSENT: Final = "absent"
"""A fact with this name says what the machine lacks for the question; then there is nothing to judge."""
ALSO: Final = "also"
"""Facts for other rows that the program found as well, by row."""
_LEAST_LIMIT_S: Final = 15.0
_LIMIT_IN_COSTS: Final = 3.0


class Runs(Enum):
    """The place of the row's program."""

    BARE = "bare"
    CONTAINED = "contained"
    BOTH = "both"
    """First directly, then in a container."""
    STAGE = "stage"
    """It creates its containers itself."""
    CONFORMANCE = "conformance"
    """It is an area of the conformance program."""


class Judgement(NamedTuple):
    """What was found, as a sentence; whether it is as expected, None if nothing was."""

    agrees: bool | None
    found: str


@dataclass(frozen=True)
class Row:
    name: str
    asks: str
    expected: str
    program: tuple[str, ...]
    """A module of `programs` or `stages`, and its arguments; or an area of the conformance program."""
    judge: Callable[[Facts], Judgement]
    runs: Runs = Runs.BARE
    cost_s: float = 4.0
    """Duration on two otherwise idle processors; with less time left it is not begun."""
    managed_bytes: int = 0
    """The most managed memory that its programs allocate at a time."""
    only_card: bool = False
    """Whether a simulated card's answer is meaningless: it is recorded and not judged."""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def limit_s(self) -> float:
        """After this time it counts as hung, and is ended."""
        return _LEAST_LIMIT_S + _LIMIT_IN_COSTS * self.cost_s
