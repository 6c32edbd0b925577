"""Resources held for pods that wait for their victims: what each will get on its nominated node.

They count as taken for pods of the same or a lower priority, cards included, whether or not the victims have left. A
nominated pod has no labels here: no pod may be placed near a pod that is not running yet.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import Gang, NodeName, PodUid
from partage_scheduler.decision import Decider, Decision
from partage_scheduler.objects import ApiPod, gang_of
from partage_scheduler.predicates import Predicates


class _Place(Struct, frozen=True):
    pod: ApiPod
    decision: Decision


class Kept:
    def __init__(self, decider: Decider, predicates: Predicates) -> None:
        self._decider, self._predicates = decider, predicates
        self._places: dict[PodUid, _Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, uid: object) -> bool:
        return uid in self._places

    def node_of(self, uid: PodUid) -> NodeName | None:
        place = self._places.get(uid)
        return None if place is None else place.decision.node

    def put(self, pod: ApiPod, decision: Decision) -> None:
        self.remove(pod.uid)
        self._places[pod.uid] = place = _Place(_without_labels(pod), decision)
        self._take(place)

    def remove(self, uid: PodUid) -> bool:
        """Releases what is held for a pod; returns whether there was anything."""
        place = self._places.pop(uid, None)
        if place is None:
            return False
        self._give_back(place)
        return True

    def remove_gang(self, gang: Gang) -> None:
        self._without([each.pod for each in self._places.values() if gang_of(each.pod) == gang])

    def node_gone(self, node: NodeName) -> list[ApiPod]:
        """Releases what is held on a node that is about to be removed; returns the pods concerned."""
        return self._without([each.pod for each in self._places.values() if each.decision.node == node])

    def yields(self, node: NodeName, priority: int) -> list[ApiPod]:
        """Releases what is held on a node for pods of a lower priority; returns these pods."""
        places = [each for each in self._places.values() if each.decision.node == node]
        return self._without([each.pod for each in places if each.pod.priority < priority])

    @contextmanager
    def lifted(self, pod: ApiPod) -> Generator[None]:
        """Suspends, while open, what is held for this pod itself and for pods of a lower priority."""
        lifted = [place for uid, place in self._places.items() if uid == pod.uid or place.pod.priority < pod.priority]
        for place in lifted:
            self._give_back(place)
        try:
            yield
        finally:
            for place in lifted:
                self._take(place)

    def _without(self, pods: list[ApiPod]) -> list[ApiPod]:
        for pod in pods:
            self.remove(pod.uid)
        return pods

    def _take(self, place: _Place) -> None:
        decision = place.decision
        self._decider.take(decision.taken, decision.request.needs)
        self._predicates.put_pod(self._decider.slots.known(decision.node), place.pod)

    def _give_back(self, place: _Place) -> None:
        self._decider.give_back(place.pod.uid)
        self._predicates.remove_pod(place.pod.uid)


def _without_labels(pod: ApiPod) -> ApiPod:
    return replace(
        pod,
        metadata=replace(pod.metadata, labels={}),
        spec=replace(pod.spec, affinity=None, topology_spread_constraints=()),
    )
