"""Compares figures with bars."""

from dataclasses import dataclass
from typing import Literal

Sense = Literal["at_most", "at_least"]


@dataclass(frozen=True)
class Bar:
    """A figure and its bar. `holds` is None if it was not judged."""

    name: str
    figure: float
    sense: Sense
    bar: float
    unit: str
    holds: bool | None


def limit_of(at_most: float | None, at_least: float | None) -> tuple[Sense, float]:
    if at_most is not None and at_least is None:
        return "at_most", at_most
    if at_least is not None and at_most is None:
        return "at_least", at_least
    raise ValueError("a bar has either at_most or at_least")


def holds(figure: float, sense: Sense, bar: float) -> bool:
    """Whether the figure reaches the bar. NaN never does."""
    return figure <= bar if sense == "at_most" else figure >= bar
