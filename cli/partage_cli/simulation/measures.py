"""Measures how much of a fleet is allocated and how much of the rest is fragmented, from grants alone.

It shares no code with the plugins that decide, so it also detects a card that they allocated twice. Fragmentation is
measured as published for fragmentation gradient descent: the idle part of a node that a typical pod could not use,
weighted by the frequency of that pod's shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from partage_cli.simulation.workloads import WHOLE_MILLI, FleetNode
from partage_gpu.allocator.shapes import Typical, TypicalShape
from partage_plugins.api import GPU, Allocation, CardId, NodeName, PodRequest
from partage_plugins.errors import PartageError


class MisCounted(PartageError):
    """An impossible allocation: the plugin that made it miscounted."""


class Meter:
    """The state of all cards, from grants."""

    def __init__(self, nodes: Sequence[FleetNode], typical: Typical) -> None:
        self._typical = typical
        self._rows: Mapping[NodeName, int] = {node.name: row for row, node in enumerate(nodes)}
        self._places: dict[CardId, tuple[int, int]] = {}
        most = max((len(node.cards) for node in nodes), default=0)
        self._left_milli: NDArray[np.int64] = np.zeros((len(nodes), most), dtype=np.int64)
        self._cpu_milli = np.array([node.total.cpu_milli for node in nodes], dtype=np.int64)
        models: NDArray[np.object_] = np.full(self._left_milli.shape, "", dtype=object)
        for row, node in enumerate(nodes):
            for column, card in enumerate(node.cards):
                self._places[card.id] = row, column
                self._left_milli[row, column] = WHOLE_MILLI
                models[row, column] = card.model
        self._allowed = [_allowed(models, each.shape.models) for each in typical]
        self.capacity_milli = len(self._places) * WHOLE_MILLI

    def take(self, allocation: Allocation, request: PodRequest) -> None:
        """Count a pod's grants; counts nothing if a card does not exist or is exhausted."""
        row = self._rows.get(allocation.node)
        if row is None:
            raise MisCounted(f"node {allocation.node} is not in the fleet")
        taken = taken_milli(allocation, request)
        for card, milli in taken.items():
            place = self._places.get(card)
            if place is None or place[0] != row:
                raise MisCounted(f"card {card} is not on node {allocation.node}")
            if milli > self._left_milli[place]:
                raise MisCounted(f"card {card} has {self._left_milli[place]} milli left, not {milli}")
        for card, milli in taken.items():
            self._left_milli[self._places[card]] -= milli
        self._cpu_milli[row] -= request.needs.cpu_milli

    @property
    def allocated_percent(self) -> float:
        return 100 * (self.capacity_milli - self.idle_milli) / self.capacity_milli

    @property
    def idle_milli(self) -> int:
        """Free share on all cards."""
        return int(self._left_milli.sum())

    @property
    def idle_cards(self) -> int:
        """Cards without any grant."""
        return int(np.count_nonzero(self._left_milli == WHOLE_MILLI))

    @property
    def fragment_percent(self) -> float:
        """Idle share that typical pods can't use, as a percentage of all cards."""
        useful = sum(
            each.fraction * self._useful_milli(each, allowed)
            for each, allowed in zip(self._typical, self._allowed, strict=True)
        )
        return 100 * (self.idle_milli - useful) / self.capacity_milli

    def _useful_milli(self, typical: TypicalShape, allowed: NDArray[np.bool_]) -> float:
        """Free share on cards that a pod of this shape could use, on nodes where the whole pod fits."""
        shape = typical.shape
        if not shape.count:
            return 0.0
        usable = allowed & (self._left_milli >= max(shape.milli, 1))
        fits = (usable.sum(axis=1) >= shape.count) & (self._cpu_milli >= shape.cpu_milli)
        return float(self._left_milli[usable & fits[:, None]].sum())


def taken_milli(allocation: Allocation, request: PodRequest) -> dict[CardId, int]:
    """A pod's peak use of each card: init containers run one by one, before the others."""
    granted = allocation.of(GPU)
    running: dict[CardId, int] = {}
    highest: dict[CardId, int] = {}
    for container in request.containers:
        for grant in granted.get(container.name, ()):
            milli = running.get(grant.card, 0) + grant.share_milli
            highest[grant.card] = max(highest.get(grant.card, 0), milli)
            if container.role != "init":
                running[grant.card] = milli
    return highest


def _allowed(models: NDArray[np.object_], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    """Cards whose model a shape accepts; an empty model is no card."""
    exists: NDArray[np.bool_] = models != ""
    return exists & np.isin(models, list(wanted)) if wanted else exists
