"""Metrics of what cards, pods and nodes are used for: one series for each.

They are recomputed every few seconds, in short turns and only for nodes that changed, because a full count of a large
cluster takes long. A scrape gets the last result. Users choose the number and names of pods, so the number of pod
series is limited, fairly by namespace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from partage_base.daemon.exposition import Family, Sample, escaped
from partage_base.daemon.fairness import fair_part
from partage_plugins.api import Inventory, NodeName
from partage_plugins.api.limits import WHOLE_MILLI
from partage_scheduler.cluster import Cluster
from partage_scheduler.cluster.fullness import Fullness, loads, together, whole
from partage_scheduler.cluster.placed_pods import PlacedPod

MOST_PODS: Final = 50_000
_COUNTED_EVERY_S: Final = 15.0
_TURN_S: Final = 0.002
"""Time for which it counts before it yields to other tasks."""
_OF_CARDS: Final = (
    ("partage_card_promised_share_ratio", "What pods are guaranteed of a card's time."),
    ("partage_card_promised_memory_bytes", "What pods may hold of a card's memory."),
    ("partage_card_memory_bytes", "What may be given away of a card's memory."),
)
_OF_PODS: Final = (
    ("partage_pod_promised_share_ratio", "What a pod is guaranteed of a card's time."),
    ("partage_pod_promised_memory_bytes", "What a pod may hold of a card's memory."),
)


class _HeldCard(NamedTuple):
    """What one pod holds of one card."""

    namespace: str
    lines: tuple[str, ...]
    """One for each of `_OF_PODS`."""


class _NodeSeries(NamedTuple):
    """Series of one node, valid while the same objects are there."""

    there: Sequence[object]
    full: Fullness
    cards: tuple[str, ...]
    """Lines for each of `_OF_CARDS`."""
    pods: Sequence[_HeldCard]


class OccupancyMetrics:
    def __init__(
        self, cluster: Cluster, *, clock: Callable[[], float] = time.monotonic, most_pods: int = MOST_PODS
    ) -> None:
        self._cluster, self._clock, self._most_pods = cluster, clock, most_pods
        self._shown: dict[NodeName, _NodeSeries] = {}
        self._families: tuple[Family, ...] = ()

    def families(self) -> Sequence[Family]:
        """The result of the last count."""
        return self._families

    async def run(self) -> None:
        while True:
            await self.count()
            await asyncio.sleep(_COUNTED_EVERY_S)

    async def count(self) -> None:
        """Counts again, in short turns; a node that is removed meanwhile is left out."""
        shown, until = dict[NodeName, _NodeSeries](), time.monotonic() + _TURN_S
        for name in self._cluster.fleet.names:
            if name in self._cluster.fleet:
                shown[name] = self._node(name)
            if time.monotonic() >= until:
                await asyncio.sleep(0)
                until = time.monotonic() + _TURN_S
        self._shown = shown
        self._families = tuple(self._counted(self._clock()))

    def _node(self, name: NodeName) -> _NodeSeries:
        """The previous series, unless the node's inventory, its pods or what they use have changed."""
        inventory, placed_pods = self._cluster.inventory(name), self._cluster.placed_pods.on(name)
        there, kept = [inventory, *placed_pods, *(placed.usages for placed in placed_pods)], self._shown.get(name)
        return kept if kept is not None and kept.there == there else _series_of(name, there, inventory, placed_pods)

    def _counted(self, now: float) -> Iterator[Family]:
        nodes = self._shown.values()
        yield from _in_all(together(node.full for node in nodes))
        for place, (name, sentence) in enumerate(_OF_CARDS):
            yield Family(name, "gauge", sentence, text="".join([node.cards[place] for node in nodes]))
        pods = list(chain.from_iterable(node.pods for node in nodes))
        shown = fair_part(pods, self._most_pods, lambda pod: pod.namespace)
        for place, (name, sentence) in enumerate(_OF_PODS):
            yield Family(name, "gauge", sentence, text="".join([pod.lines[place] for pod in shown]))
        unshown = len(pods) - len(shown)
        yield _one("partage_scheduler_unshown_pods", "Pods, once for each of their cards, that are not shown.", unshown)
        yield self._in_force(now)

    def _in_force(self, now: float) -> Family:
        """One sample per node; `says-nothing` includes nodes on which partage was never installed."""
        fleet = self._cluster.fleet
        why = {node: fleet.why_not(node, now) for node in fleet.names}
        samples = [
            Sample(reason is None, {"node": node, "reason": reason.code if reason else ""})
            for node, reason in why.items()
        ]
        return Family(
            "partage_node_in_force", "gauge", "1 where a node takes part in sharing, else 0 and why.", tuple(samples)
        )


def _series_of(
    name: NodeName, there: Sequence[object], inventory: Inventory, placed_pods: Sequence[PlacedPod]
) -> _NodeSeries:
    node, ((share, _), (memory, _), (size, _)) = escaped(name), _OF_CARDS
    found = loads(inventory, chain.from_iterable(placed.usages for placed in placed_pods))
    cards = [(f'{{device_uuid="{escaped(load.card.id)}",node="{node}"}}', load) for load in found]
    lines = (
        "".join([f"{share}{labels} {load.share_milli / WHOLE_MILLI}\n" for labels, load in cards]),
        "".join([f"{memory}{labels} {load.memory_bytes}\n" for labels, load in cards]),
        "".join([f"{size}{labels} {load.card.memory_bytes}\n" for labels, load in cards]),
    )
    return _NodeSeries(there, whole(found), lines, [pod for placed in placed_pods for pod in _held(node, placed)])


def _held(node: str, placed: PlacedPod) -> Iterator[_HeldCard]:
    namespace = placed.pod.namespace
    of_pod = f'namespace="{escaped(namespace)}",node="{node}",pod="{escaped(placed.pod.name)}"'
    (share, _), (memory, _) = _OF_PODS
    for usage in placed.usages:
        labels = f'{{device_uuid="{escaped(usage.card)}",{of_pod}}}'
        lines = f"{share}{labels} {usage.share_milli / WHOLE_MILLI}\n", f"{memory}{labels} {usage.memory_bytes}\n"
        yield _HeldCard(namespace, lines)


def _in_all(full: Fullness) -> Iterator[Family]:
    yield _one("partage_scheduler_cards", "Cards that are shared.", full.cards)
    yield _one("partage_scheduler_free_cards", "Cards that no pod is on.", full.free_cards)
    yield _one("partage_scheduler_allocated_share_ratio", "Part of all cards' time given away.", full.share_given)
    yield _one("partage_scheduler_allocated_memory_ratio", "Part of their memory given away.", full.memory_given)
    yield _one(
        "partage_scheduler_fragmented_share_ratio",
        "Part of the free time that is on cards in use, where no pod gets a whole card.",
        full.share_in_pieces,
    )


def _one(name: str, sentence: str, value: float) -> Family:
    return Family(name, "gauge", sentence, (Sample(value),))
