"""CPU and memory promised to pending pods by a `nominatedNodeName` that another scheduler or its preemption set.

They count against pods of the same or a lower priority. Other needs of such a pod are checked when it arrives. For a
pod that waits for our own victims everything it needs is held in `kept`, and its promise here doesn't count.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from partage_plugins.api import NodeName, PodUid, Resources
from partage_scheduler.decision import Decider, FilteredNodes
from partage_scheduler.decision.free_resources import INSUFFICIENT_CPU, INSUFFICIENT_MEMORY
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.needs import needs


class _Promise(NamedTuple):
    node: NodeName
    priority: int
    needs: Resources


class Promised:
    def __init__(self) -> None:
        self._by_pod: dict[PodUid, _Promise] = {}

    def put(self, pod: ApiPod) -> bool:
        """Records the promise to a pending pod, if any; returns whether an earlier one was released."""
        node = NodeName(pod.status.nominated_node_name)
        if not node:
            return self.remove(pod.uid)
        before = self._by_pod.get(pod.uid)
        self._by_pod[pod.uid] = _Promise(node, pod.priority, needs(pod))
        return before is not None and before != self._by_pod[pod.uid]

    def node_of(self, uid: PodUid) -> NodeName | None:
        promise = self._by_pod.get(uid)
        return None if promise is None else promise.node

    def remove(self, uid: PodUid) -> bool:
        return self._by_pod.pop(uid, None) is not None

    def barred(
        self, pod: ApiPod, asked: Resources, decider: Decider, *, kept: Container[PodUid]
    ) -> Iterator[FilteredNodes]:
        """Nodes whose free CPU or memory is too little once promises to others are subtracted."""
        if not self._by_pod:
            return
        cpu, memory = decider.slots.flags(()), decider.slots.flags(())
        for node, (cpu_milli, memory_bytes) in self._against(pod, kept).items():
            at = decider.slots.of(node)
            if at is not None:
                left = decider.free(node)
                cpu[at] = 0 < asked.cpu_milli > left.cpu_milli - cpu_milli
                memory[at] = 0 < asked.memory_bytes > left.memory_bytes - memory_bytes
        for reason, flags in ((INSUFFICIENT_CPU, cpu), (INSUFFICIENT_MEMORY, memory)):
            if flags.any():
                yield FilteredNodes(reason, flags)

    def _against(self, pod: ApiPod, kept: Container[PodUid]) -> dict[NodeName, tuple[int, int]]:
        """How much of each node is promised to others of the same or a higher priority."""
        found: dict[NodeName, tuple[int, int]] = {}
        for uid, (node, priority, promised) in self._by_pod.items():
            if uid != pod.uid and priority >= pod.priority and uid not in kept:
                cpu, memory = found.get(node, (0, 0))
                found[node] = cpu + promised.cpu_milli, memory + promised.memory_bytes
        return found
