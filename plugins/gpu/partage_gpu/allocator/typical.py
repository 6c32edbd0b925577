"""Learns the typical shapes of pods from the pods that are scheduled.

Each pod counts once, however often it is tried. Older pods count less: after every `_PERIOD` pods the typical shapes
are computed again and all counts are halved. They are published only if they differ by more than `_ALIKE`, because
every score changes with them. Correct placement never depends on them, and a scheduler that starts has learnt them
again after a few hundred pods.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.plan import Plan
from partage_gpu.allocator.shapes import Shape, Typical, popular_shapes
from partage_plugins.api.gpu import GpuRequest
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import PodUid

_FIRST: Final = 128
_PERIOD: Final = 4096
_MOST_SHAPES: Final = 2048
_MOST_PODS: Final = 8192
_MOST_MODELS: Final = 16
"""A shape with more models than this is not typical."""
_ALIKE: Final = 0.05
"""The fraction of pods that may have other shapes than before."""


class ShapeCounts:
    """How often each shape was requested."""

    def __init__(self) -> None:
        self._counts: dict[Shape, float] = {}
        self._seen: OrderedDict[PodUid, None] = OrderedDict()
        self._until = _FIRST
        self._period = _FIRST
        self._told: Typical = ()

    def from_pod(self, pod: PodUid, shape: Shape) -> Typical | None:
        """Counts a new pod; returns the typical shapes if they are due and differ."""
        if pod in self._seen or len(shape.models) > _MOST_MODELS:
            return None
        self._seen[pod] = None
        if len(self._seen) > _MOST_PODS:
            self._seen.popitem(last=False)
        self._counts[shape] = self._counts.get(shape, 0.0) + 1
        self._until -= 1
        return None if self._until else self._taken_anew()

    def _taken_anew(self) -> Typical | None:
        self._period = self._until = min(2 * self._period, _PERIOD)
        typical = popular_shapes(self._counts)
        kept = sorted(self._counts, key=self._counts.__getitem__, reverse=True)[:_MOST_SHAPES]
        self._counts = {shape: self._counts[shape] / 2 for shape in kept}
        if not any(each.shape.count for each in typical) or _are_alike(typical, self._told):
            return None
        self._told = typical
        return typical


def _are_alike(some: Typical, others: Typical) -> bool:
    """Whether nearly all pods have the same shapes."""
    now, before = ({each.shape: each.frequency for each in typical} for typical in (some, others))
    return sum(abs(now.get(shape, 0.0) - before.get(shape, 0.0)) for shape in {**before, **now}) / 2 <= _ALIKE


def shape_of(plan: Plan, cluster: Cluster) -> Shape:
    """A pod's shape; for several containers with cards, the total number of cards and the largest part of one."""
    if not plan.asks:
        return Shape(plan.cpu_milli, 0, 0)
    total = int(cluster.total_bytes[-1])
    milli = max(
        max(ask.request.share_milli, min(WHOLE_MILLI, ask.request.memory_on(total) * WHOLE_MILLI // total))
        for ask in plan.asks
    )
    models = _models(plan.asks[0].request, cluster)
    return Shape(plan.cpu_milli, sum(ask.request.count for ask in plan.asks), milli, models)


def _models(wanted: GpuRequest, cluster: Cluster) -> tuple[str, ...]:
    """The models that it names, or whose names contain what it names."""
    if not wanted.model_parts:
        return wanted.models
    return tuple(sorted({make.model for make in cluster.makes if wanted.wants_model(make.model)}))
