"""Required pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import Barred
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.kinds import Kinds
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.pod_selectors import Namespaces
from partage_scheduler.predicates.terms import Term, Terms
from partage_scheduler.predicates.wishes import NONE, Wishes

NOT_NEAR: Final = Reason("affinity", "node(s) didn't match pod affinity rules")
NOT_APART: Final = Reason("anti-affinity", "node(s) didn't match pod anti-affinity rules")
OTHERS_APART: Final = Reason("anti-affinity-of-others", "node(s) didn't satisfy existing pods anti-affinity rules")


class Nearness:
    """Required terms: affinity and anti-affinity of the incoming pod, and anti-affinity of the pods on nodes."""

    def __init__(self, nodes: Nodes, namespaces: Namespaces, kinds: Kinds) -> None:
        self._nodes, self._namespaces, self._kinds = nodes, namespaces, kinds
        self._apart = Terms[Flags](nodes, namespaces, self._held_at)

    def take(self, slot: int, wishes: Wishes) -> None:
        for near in wishes.with_none:
            self._apart.take(slot, near)

    def give_back(self, slot: int, wishes: Wishes) -> None:
        for near in wishes.with_none:
            self._apart.give_back(slot, near)

    def namespaces_changed(self) -> None:
        self._apart.namespaces_changed()

    def barred(self, pod: ApiPod, wishes: Wishes) -> list[Barred]:
        if wishes is NONE and not self._apart:
            return []
        reasons = (NOT_NEAR, self._too_far(pod, wishes)), (NOT_APART, self._too_near(wishes)), self._unwelcome(pod)
        return [Barred(reason, flags) for reason, flags in reasons if flags is not None]

    def _too_far(self, pod: ApiPod, wishes: Wishes) -> Flags | None:
        """Nodes not sharing a domain with pods that all terms select; the first pod of a group may open a domain."""
        if not wishes.with_all:
            return None
        tally = self._kinds.group(wishes.choosers).tally
        all_places = [tally.places(near.topology_key) for near in wishes.with_all]
        is_first = not any(places.total for places in all_places) and self._chooses_itself(pod, wishes)
        fine = np.ones(self._nodes.end, dtype=np.bool_)
        for places in all_places:
            fine &= places.labelled() if is_first else places.at()
        return ~fine

    def _chooses_itself(self, pod: ApiPod, wishes: Wishes) -> bool:
        labels = self._namespaces.labels(pod.namespace)
        return all(each.chooses(pod.namespace, labels, pod.metadata.labels) for each in wishes.choosers)

    def _too_near(self, wishes: Wishes) -> Flags | None:
        found: Flags | None = None
        for near in wishes.with_none:
            tally = self._kinds.group((near.chooser,)).tally
            if tally:
                at = tally.places(near.topology_key).at()
                found = at if found is None else found | at
        return found

    def _unwelcome(self, pod: ApiPod) -> tuple[Reason, Flags | None]:
        return OTHERS_APART, self._apart.said_of(pod.namespace, pod.metadata.labels)

    def _held_at(self, terms: Iterable[Term]) -> Flags:
        """Nodes in the topology domain of a pod that holds one of these terms."""
        found = np.zeros(self._nodes.end, dtype=np.bool_)
        for term in terms:
            found |= term.places().at()
        return found
