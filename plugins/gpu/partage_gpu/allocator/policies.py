"""The preferences of each policy: the score of each possible card for an ask, from 0 to 1.

A node's score is that of its best card; for an ask of several cards, the mean of the chosen ones, except for policies
that score a set as a whole. `PolicyJudge` holds the data of single policies. Policies that consider links want close
sets, and a single card that breaks no close set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import Final

import numpy as np

from partage_gpu.allocator.closeness import Closeness, within
from partage_gpu.allocator.cluster import CLOSED, Cluster
from partage_gpu.allocator.fragments import Fragments
from partage_gpu.allocator.mix import Mix
from partage_gpu.allocator.one_by_one import FIT_MILLI, PRESSURE, SCALE_MILLI, OneByOne
from partage_gpu.allocator.shapes import Typical, pressures
from partage_gpu.allocator.trial import Offer
from partage_plugins.answers import Flags, Ints, Reals
from partage_plugins.api.limits import WHOLE_MILLI


def isolation(offer: Offer) -> Reals:
    """By card: 1 if using it alone breaks nothing, less the closer the other idle cards of its node are."""
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
    """By node: the mean closeness of the chosen cards; for a single card, how little it breaks."""
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


BY_CPU: Final = frozenset(("fgd", "fgd+"))
"""Policies that consider a node's CPU."""
_SIGMOID_MILLI: Final = 1000.0
_POINTS: Final = 100
_EPSILON: Final = 1e-9
"""Sums of fractions differ in their last digit by the order of their terms."""


class PolicyJudge:
    """A cluster with its typical shapes."""

    def __init__(self, cluster: Cluster, typical: Typical) -> None:
        self.cluster = cluster
        self._typical = typical
        self.published = Fragments(typical, scarce=False)
        self.scarce = Fragments(typical, scarce=True)
        self.pressure: Reals = np.zeros(1)
        """By make."""
        self.most_milli = self.most_cpu = 1
        """The values of the largest nodes."""
        self.one_by_one = OneByOne(cluster, self.scarce, pressures=[0.0], most_milli=1, most_cpu=1)
        self._known: object = None
        self._seen = (-1, 0)

    def looks(self) -> bool:
        """Updates everything that depends on the set of cards; returns whether scores changed."""
        cluster = self.cluster
        seen = cluster.changes, len(cluster.makes)
        if seen == self._seen:
            return False
        self.published.knows(cluster.makes)
        self.scarce.knows(cluster.makes)
        by_model = pressures(self._typical, cluster.cards_of)
        self.pressure = np.array([by_model.get(make.model, 0.0) for make in cluster.makes])
        self.most_milli = max(1, int(cluster.cards.max()) * WHOLE_MILLI)
        self.most_cpu = max(1, int(cluster.cpu_total.max()))
        self.one_by_one = OneByOne(
            cluster,
            self.scarce,
            pressures=self.pressure.tolist(),
            most_milli=self.most_milli,
            most_cpu=self.most_cpu,
        )
        had, self._seen = self._known, seen
        self._known = by_model, self.most_milli, self.most_cpu
        return had != self._known


def worths(mix: Mix, offer: Offer, judge: PolicyJudge) -> Reals:
    """The score of each possible card."""
    total: Reals | None = None
    for name, weight in mix.weights:
        mine = _WORTHS[name](offer, judge)
        total = weight * mine if total is None else total + weight * mine
    return np.zeros(offer.level.shape) if total is None else total


def worths_of_sets(mix: Mix, offer: Offer, chosen: Flags, judge: PolicyJudge) -> Reals:
    """The score of each node, with these cards chosen."""
    total = np.zeros(len(offer.slots))
    for name, weight in mix.weights:
        if name in _SETS:
            total += weight * _SETS[name](offer, chosen, judge)
        elif chosen.any():
            each = np.where(chosen, _WORTHS[name](offer, judge), 0.0).sum(axis=1)
            total += weight * each / np.maximum(chosen.sum(axis=1), 1)
    return total


def _binpack(offer: Offer, judge: PolicyJudge) -> Reals:
    """The fullest card of the fullest node, with equal weights."""
    del judge
    cards = np.maximum((offer.cluster.share_left[offer.slots] > CLOSED).sum(axis=1), 1)
    node_left = offer.level.sum(axis=1) / (cards * WHOLE_MILLI)
    fullness: Reals = 1.0 - (offer.after / WHOLE_MILLI + node_left[:, None]) / 2
    return fullness


def _spread(offer: Offer, judge: PolicyJudge) -> Reals:
    """The emptiest card of the emptiest node."""
    return 1.0 - _binpack(offer, judge)


def _kubeshare(offer: Offer, judge: PolicyJudge) -> Reals:
    """Best fit: the card in use that would have the least left; an idle card only if none in use fits."""
    del judge
    worth: Reals = 1.0 - (offer.hole + 0.5 * offer.trial.idle) / (WHOLE_MILLI + 1)
    return worth


def _fgd(offer: Offer, judge: PolicyJudge) -> Reals:
    return _in_points(judge.published.gains(offer))


def _fgd_of_sets(offer: Offer, chosen: Flags, judge: PolicyJudge) -> Reals:
    return _in_points(judge.published.gains_of_sets(offer, chosen))


def _in_points(gains: Reals) -> Reals:
    """As published: rounded down to hundredths. Ties are broken by order, which is part of the quality."""
    points: Reals = np.floor(_POINTS / (1.0 + np.exp(-gains / _SIGMOID_MILLI)) + _EPSILON) / _POINTS
    return points


def _fgd_plus(offer: Offer, judge: PolicyJudge) -> Reals:
    taken = np.where(offer.possible, offer.level - offer.after, 0)
    kept = _pressure(offer, judge)[:, None] * taken
    return _scaled(judge.scarce.gains(offer) - kept - _emptiness(offer, judge, taken))


def _fgd_plus_of_sets(offer: Offer, chosen: Flags, judge: PolicyJudge) -> Reals:
    taken = np.where(chosen, offer.level - offer.after, 0).sum(axis=1, keepdims=True)
    kept = _pressure(offer, judge) * taken[:, 0]
    return _scaled(judge.scarce.gains_of_sets(offer, chosen) - kept - _emptiness(offer, judge, taken)[:, 0])


def _pressure(offer: Offer, judge: PolicyJudge) -> Reals:
    """By node: how much of what an ask takes should be kept for pods that can use no other model."""
    pressure: Reals = PRESSURE * judge.pressure[offer.cluster.main_make[offer.slots]]
    return pressure


def _emptiness(offer: Offer, judge: PolicyJudge, taken: Ints) -> Reals:
    """By card, for its node with the ask: 0 if no CPU and no card is left, highest if it is large and empty."""
    cards = (offer.level.sum(axis=1)[:, None] - taken) / judge.most_milli
    cpu = np.minimum(offer.trial.cpu_after / judge.most_cpu, 1.0)[:, None]
    emptiness: Reals = FIT_MILLI * (cards + cpu) / 2
    return emptiness


def _scaled(gains: Reals) -> Reals:
    return np.clip(0.5 + gains / SCALE_MILLI, 0.0, 1.0)


def _topology(offer: Offer, judge: PolicyJudge) -> Reals:
    del judge
    return isolation(offer)


def _topology_of_sets(offer: Offer, chosen: Flags, judge: PolicyJudge) -> Reals:
    del judge
    return tightness(offer, chosen)


_WORTHS: Final[Mapping[str, Callable[[Offer, PolicyJudge], Reals]]] = {
    "binpack": _binpack,
    "spread": _spread,
    "kubeshare": _kubeshare,
    "fgd": _fgd,
    "fgd+": _fgd_plus,
    "topology": _topology,
}
_SETS: Final[Mapping[str, Callable[[Offer, Flags, PolicyJudge], Reals]]] = {
    "fgd": _fgd_of_sets,
    "fgd+": _fgd_plus_of_sets,
    "topology": _topology_of_sets,
}
