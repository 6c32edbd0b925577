"""How good cards are for those who look at links: a set should be close, a single card should break no close set."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from partage_gpu.allocator.closeness import Closeness, within
from partage_gpu.allocator.trial import Offer
from partage_plugins.answers import Flags, Reals


def isolation(offer: Offer) -> Reals:
    """By card: 1 where one card alone breaks nothing, less the closer the other idle cards of its node are."""
    found = np.ones(offer.level.shape)
    known: dict[tuple[int, bytes], Sequence[float]] = {}
    for row, slot in enumerate(offer.slots.tolist()):
        close = offer.cluster.nodes[slot].closeness
        idle = offer.trial.idle[row, : len(close)]
        key = id(close), idle.tobytes()
        if key not in known:
            known[key] = alone_in(close, idle.tolist())
        found[row, : len(close)] = known[key]
    return found


def alone_in(close: Closeness, idle: Sequence[bool]) -> Sequence[float]:
    """The same for one node."""
    return [1.0 - loss for loss in _losses(close, idle)]


def tightness(offer: Offer, chosen: Flags) -> Reals:
    """By node: how close the chosen cards are in the mean; of a single one, how little it breaks."""
    found = np.zeros(len(offer.slots))
    alone = isolation(offer)
    for row, slot in enumerate(offer.slots.tolist()):
        places = np.flatnonzero(chosen[row]).tolist()
        if len(places) > 1:
            found[row] = within(offer.cluster.nodes[slot].closeness, places) / comb(len(places), 2)
        elif places:
            found[row] = alone[row, places[0]]
    return found


def _losses(close: Closeness, idle: Sequence[bool]) -> list[float]:
    others = max(1, len(close) - 1)
    return [
        sum(near for near, other in zip(row, idle, strict=True) if other) / others if idle[place] else 0.0
        for place, row in enumerate(close)
    ]
