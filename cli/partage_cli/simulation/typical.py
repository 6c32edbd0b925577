"""Shapes of pods' requests, by which fragmentation is measured here and in the allocator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from partage_gpu.allocator import Shape, popular_shapes
from partage_gpu.allocator.shapes import Typical
from partage_plugins.api import GPU, PodRequest


def shape_of(request: PodRequest) -> Shape:
    """All cards of the pod together, with the largest share that any container requests."""
    asks = list(request.of(GPU).values())
    largest = max(asks, key=lambda ask: ask.share_milli, default=None)
    if largest is None:
        return Shape(request.needs.cpu_milli, 0, 0)
    return Shape(request.needs.cpu_milli, sum(ask.count for ask in asks), largest.share_milli, largest.models)


def typical_of(requests: Iterable[PodRequest]) -> Typical:
    """The most frequent shapes, which cover nearly all pods, as in the published experiments."""
    return popular_shapes(Counter(map(shape_of, requests)))
