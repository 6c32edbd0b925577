"""Which images are on which nodes already, and how large they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from partage_plugins.answers import Scores
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.predicates.counters import Counter

_LEAST: Final = 23 << 20
_MOST: Final = 1000 << 20
"""Bytes already on a node: below the first in total they score 0; above the second per container they add nothing."""


class _Image:
    __slots__ = ("nodes", "size")

    def __init__(self) -> None:
        self.nodes, self.size = Counter(), 0


class Images:
    def __init__(self) -> None:
        self._images: dict[str, _Image] = {}
        self._by_slot: dict[int, tuple[str, ...]] = {}

    def put(self, slot: int, node: ApiNode) -> None:
        sizes = {name: each.size_bytes for each in node.status.images for name in each.names or ()}
        if self._by_slot.get(slot, ()) == tuple(sizes):
            return
        self.remove(slot)
        for name, size in sizes.items():
            image = self._images.setdefault(name, _Image())
            image.size = size
            image.nodes.add(slot, 1)
        self._by_slot[slot] = tuple(sizes)

    def remove(self, slot: int) -> None:
        for name in self._by_slot.pop(slot, ()):
            image = self._images[name]
            image.nodes.add(slot, -1)
            if not image.nodes:
                del self._images[name]

    def scores(self, pod: ApiPod, nodes: int, end: int) -> Scores | None:
        """From 0 to 100: grows with the bytes that need not be pulled. An image counts less the fewer nodes have it."""
        if not self._images:
            return None
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        found = [image for image in map(self._images.get, _names(each.image for each in containers)) if image]
        if not found:
            return None
        there = np.zeros(end, dtype=np.float32)
        for image in found:
            there[image.nodes.flags(end)] += image.size * len(image.nodes) / nodes
        most = _MOST * len(containers)
        scores = 100 * (np.clip(there, _LEAST, most) - _LEAST) / (most - _LEAST)
        return scores.astype(np.float32)


def _names(images: Iterable[str]) -> Iterable[str]:
    """Adds the implied tag `latest` where none is written."""
    for name in images:
        yield name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
