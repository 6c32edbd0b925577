"""Pods that are suspended by their signed allocation, and what their nodes report of it.

A suspended pod keeps its cards in the accounting. Only for pods of a higher priority that fit nowhere else, and only
while its node reports that its memory is off them, it counts as without cards (`lifted`). So nobody of its own or a
lower priority gets its room meanwhile, and nothing that its owner writes makes the room free.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

from msgspec.structs import replace

from partage_plugins.api import GPU, Allocation, NodeName, PodUid
from partage_plugins.codecs.suspension import SuspensionReport
from partage_scheduler.cluster.placed_pods import PlacedPod, PlacedPods
from partage_scheduler.decision import Decider
from partage_scheduler.objects import ApiPod


class Suspensions:
    def __init__(self, decider: Decider, placed_pods: PlacedPods) -> None:
        self._decider, self._placed_pods = decider, placed_pods
        self._reports: dict[NodeName, Mapping[PodUid, SuspensionReport]] = {}

    def told(self, node: NodeName, reports: Mapping[PodUid, SuspensionReport]) -> bool:
        """Takes the present reports of a node; returns whether they differ from its last ones."""
        before = self._reports.pop(node, {})
        if reports:
            self._reports[node] = reports
        return before != reports

    def report(self, placed: PlacedPod) -> SuspensionReport | None:
        """What its node reports about the allocation that counts; None if it reports nothing, or is about it still."""
        found = self._reports.get(placed.node, {}).get(placed.pod.uid)
        is_of_this = placed.allocation.suspended is not None and found is not None
        return found if is_of_this and found is not None and found.gen == placed.allocation.gen else None

    def is_off(self, placed: PlacedPod) -> bool:
        """Whether nothing of the pod is on its cards."""
        report = self.report(placed)
        return report is not None and report.is_done

    @contextmanager
    def lifted(self, pod: ApiPod, node: NodeName | None = None) -> Generator[bool]:
        """Counts, while open, suspended pods of a lower priority, on one node or on all, as without cards.

        Yields whether there are any. The cost grows with their number.
        """
        among = self._placed_pods.suspended() if node is None else self._placed_pods.on(node)
        lifted = [(placed, placed.allocation) for placed in self._below(pod.priority, among)]
        for placed, allocation in lifted:
            count_as(self._decider, placed, without_cards(allocation))
        try:
            yield bool(lifted)
        finally:
            for placed, allocation in lifted:
                count_as(self._decider, placed, allocation)

    def _below(self, priority: int, among: Iterable[PlacedPod]) -> list[PlacedPod]:
        known = (placed for placed in among if placed.pod.priority < priority and self.is_off(placed))
        return [placed for placed in known if self._decider.slots.of(placed.node) is not None]


def without_cards(allocation: Allocation) -> Allocation:
    containers = {
        name: {kind: given for kind, given in grants.items() if kind != GPU.name}
        for name, grants in allocation.containers.items()
    }
    return replace(allocation, containers=containers)


def count_as(decider: Decider, placed: PlacedPod, allocation: Allocation) -> None:
    """Counts a pod on a known node with this allocation, until it is counted otherwise."""
    decider.give_back(placed.pod.uid)
    placed.count(allocation, placed.closes)
    decider.take(allocation, placed.needs)
