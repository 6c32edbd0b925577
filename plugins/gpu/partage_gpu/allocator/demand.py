"""Which models are in demand by pods that may have no other.

A pod that may have any card should leave those to whoever needs just them. The pressure on a model is the share of
demand (in milli of cards) that asks for it by name, over the share of cards that can serve that demand: 0 where nobody
asks for it, 1 where those who do will fill it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partage_gpu.allocator.shapes import Typical

_STEPS: Final = 50
"""Rounded, so that it changes seldom as nodes come and go: with it every score changes."""


def pressures(typical: Typical, cards: Mapping[str, int]) -> dict[str, float]:
    """The pressure on each model, of which there are so many cards."""
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
