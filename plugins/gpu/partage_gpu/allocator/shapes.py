"""Typical shapes of pods: the value of a node's free resources depends on what pods usually request.

Given, for replays of a published experiment, or learnt (`typical`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

_POPULAR: Final = 0.95


@dataclass(frozen=True, order=True, slots=True)
class Shape:
    """The requests that pods of one shape have in common."""

    cpu_milli: int
    count: int
    """Number of cards; 0 for pods that need none."""
    milli: int
    """Of each card."""
    models: tuple[str, ...] = ()
    """Any of these models; empty for any model."""


class TypicalShape(NamedTuple):
    """A shape with its frequency."""

    shape: Shape
    fraction: float
    """Share among the popular shapes, which are the ones used to count fragments; from 0 to 1."""
    frequency: float = 0.0
    """Share among all pods, from 0 to 1."""


Typical = tuple[TypicalShape, ...]

GUESSED: Final[Typical] = (
    TypicalShape(Shape(0, 1, 100), 0.10),
    TypicalShape(Shape(0, 1, 250), 0.15),
    TypicalShape(Shape(0, 1, 500), 0.15),
    TypicalShape(Shape(0, 1, 1000), 0.45),
    TypicalShape(Shape(0, 2, 1000), 0.05),
    TypicalShape(Shape(0, 4, 1000), 0.04),
    TypicalShape(Shape(0, 8, 1000), 0.06),
)
"""Used before anything is learnt."""


def popular_shapes(shapes: Iterable[Shape] | Mapping[Shape, float]) -> Typical:
    """All shapes, the most frequent first; those that make up `_POPULAR` of all pods have fractions, the others 0."""
    counted: Mapping[Shape, float] = shapes if isinstance(shapes, Mapping) else Counter(shapes)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    total, reached, kept = sum(counted.values()), 0.0, 0
    while kept < len(ordered) and reached < _POPULAR * total:
        reached += ordered[kept][1]
        kept += 1
    return tuple(
        TypicalShape(shape, number / reached if place < kept else 0.0, number / total)
        for place, (shape, number) in enumerate(ordered)
    )


_STEPS: Final = 50
"""Resolution, coarse so that it changes seldom as nodes come and go: every score changes with it."""


def pressures(typical: Typical, cards: Mapping[str, int]) -> dict[str, float]:
    """The pressure on each model, from the number of its cards."""
    demand: dict[tuple[str, ...], float] = {}
    asked = 0.0
    for shape, _, frequency in typical:
        milli = frequency * shape.count * shape.milli
        asked += milli
        if shape.models:
            demand[shape.models] = demand.get(shape.models, 0.0) + milli
    found = dict.fromkeys(cards, 0.0)
    for models, wanted in demand.items():
        serving = sum(cards.get(model, 0) for model in models)
        for model in set(models) & set(cards) if serving else ():
            found[model] += wanted / (asked or 1.0) * sum(cards.values()) / serving
    return {model: round(pressure * _STEPS) / _STEPS for model, pressure in found.items()}
