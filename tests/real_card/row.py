"""One question to a card: what it asks, what is expected, what it costs, and who judges the answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

Facts = Mapping[str, Any]
"""What a program answered, as JSON has it."""
ABSENT: Final = "absent"
"""A fact with this name says what the machine lacks for the question; then there is nothing to judge."""
ALSO: Final = "also"
"""Facts for other rows that the program learnt on its way, by their names."""
_LEAST_LIMIT_S: Final = 15.0
_LIMIT_IN_COSTS: Final = 3.0


class Runs(Enum):
    """Where the row's program runs."""

    BARE = "bare"
    CONTAINED = "contained"
    BOTH = "both"
    """First as it is, then in a container."""
    STAGE = "stage"
    """It makes its containers itself."""
    CONFORMANCE = "conformance"
    """It is an area of the conformance program."""


class Judgement(NamedTuple):
    """What was found, in words; whether it is what was expected, None where nothing was."""

    agrees: bool | None
    found: str


@dataclass(frozen=True)
class Row:
    name: str
    asks: str
    expected: str
    program: tuple[str, ...]
    """A module of `programs` or `stages`, and words for it; or an area of the conformance program."""
    judge: Callable[[Facts], Judgement]
    runs: Runs = Runs.BARE
    cost_s: float = 4.0
    """What it takes on two processors that do nothing else; with less time left it is not begun."""
    managed_bytes: int = 0
    """The managed memory that its programs ask for at a time."""
    only_card: bool = False
    """Whether a simulated card's answer says nothing: it is written down and not judged."""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def limit_s(self) -> float:
        """After so long it hangs, and is ended."""
        return _LEAST_LIMIT_S + _LIMIT_IN_COSTS * self.cost_s
