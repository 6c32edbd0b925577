"""One question to a card: what it asks, what is expected, and who judges the answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

Facts = Mapping[str, Any]
"""What a program answered, as JSON has it."""
ABSENT: Final = "absent"
"""A fact with this name says what the machine lacks for the question; then there is nothing to judge."""


class Part(Enum):
    BARE = "bare"
    LIBRARY = "library"
    TIME = "time"


class Runs(Enum):
    """Where the row's program runs."""

    BARE = "bare"
    CONTAINED = "contained"
    BOTH = "both"
    """First as it is, then in a container."""
    STAGE = "stage"
    """It makes its containers itself."""


class Judgement(NamedTuple):
    """What was found, in words; whether it is what was expected, None where nothing was."""

    agrees: bool | None
    found: str


@dataclass(frozen=True)
class Row:
    name: str
    part: Part
    asks: str
    expected: str
    program: tuple[str, ...]
    """A module of `programs` or `stages`, and words for it."""
    judge: Callable[[Facts], Judgement]
    runs: Runs = Runs.BARE
    limit_s: float = 30.0
    only_card: bool = False
    """Whether a simulated card's answer says nothing: it is written down and not judged."""
    environment: tuple[tuple[str, str], ...] = ()


def named(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Those of these names, in their order; raises `KeyError` with the first name that no row has."""
    known = {row.name for row in rows}
    for name in names:
        if name not in known:
            raise KeyError(name)
    return [row for row in rows if row.name in names]
