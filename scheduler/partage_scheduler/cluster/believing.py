"""Which allocations on pods are believed: those that we signed, for that pod on that node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from partage_plugins.vocabulary import Allocation, NodeName, PodUid
from partage_scheduler.cluster.seats import notes_of, nothing_for
from partage_scheduler.objects import ApiPod

FORGED: Final = "its allocation is not signed by us, or for another pod or node: it counts for nothing on devices"


class Believing:
    """Remembers who is not believed."""

    def __init__(self, trusted: Callable[[ApiPod], Allocation | None]) -> None:
        """`trusted` says what the signed allocation on a pod is; None where it has none that we believe."""
        self._trusted = trusted
        self._flagged: dict[PodUid, str] = {}

    @property
    def flagged(self) -> Mapping[PodUid, str]:
        """Pods whose allocation is not believed, and why."""
        return self._flagged

    def forget(self, uid: PodUid) -> None:
        """The pod is no more."""
        self._flagged.pop(uid, None)

    def held(self, pod: ApiPod, node: NodeName) -> Allocation:
        """What a pod on a node holds there of devices."""
        self._flagged.pop(pod.uid, None)
        if notes_of(pod)[0] is None:
            return nothing_for(pod, node)
        found = self._trusted(pod)
        if found is not None and (found.pod, found.node) == (pod.uid, node):
            return found
        self._flagged[pod.uid] = FORGED
        return nothing_for(pod, node)
