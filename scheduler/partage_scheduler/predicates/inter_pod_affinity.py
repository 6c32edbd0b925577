"""Required pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.affinity_terms import NONE, AffinityTerms
from partage_scheduler.predicates.label_sets import LabelSetIndex
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.pod_selectors import Namespaces
from partage_scheduler.predicates.terms import Term, Terms

NOT_NEAR: Final = Reason("affinity", "node(s) didn't match pod affinity rules")
NOT_APART: Final = Reason("anti-affinity", "node(s) didn't match pod anti-affinity rules")
OTHERS_APART: Final = Reason("anti-affinity-of-others", "node(s) didn't satisfy existing pods anti-affinity rules")


class InterPodAffinity:
    """Required terms: affinity and anti-affinity of the incoming pod, and anti-affinity of the pods on nodes."""

    def __init__(self, nodes: Nodes, namespaces: Namespaces, kinds: LabelSetIndex) -> None:
        self._nodes, self._namespaces, self._kinds = nodes, namespaces, kinds
        self._apart = Terms[Flags](nodes, namespaces, self._held_at)

    def take(self, slot: int, affinity_terms: AffinityTerms) -> None:
        for near in affinity_terms.with_none:
            self._apart.take(slot, near)

    def give_back(self, slot: int, affinity_terms: AffinityTerms) -> None:
        for near in affinity_terms.with_none:
            self._apart.give_back(slot, near)

    def namespaces_changed(self) -> None:
        self._apart.namespaces_changed()

    def barred(self, pod: ApiPod, affinity_terms: AffinityTerms) -> list[FilteredNodes]:
        if affinity_terms is NONE and not self._apart:
            return []
        reasons = (
            (NOT_NEAR, self._too_far(pod, affinity_terms)),
            (NOT_APART, self._too_near(affinity_terms)),
            self._unwelcome(pod),
        )
        return [FilteredNodes(reason, flags) for reason, flags in reasons if flags is not None]

    def _too_far(self, pod: ApiPod, affinity_terms: AffinityTerms) -> Flags | None:
        """Nodes not sharing a domain with pods that all terms select; the first pod of a group may open a domain."""
        if not affinity_terms.with_all:
            return None
        tally = self._kinds.group(affinity_terms.choosers).tally
        all_places = [tally.places(near.topology_key) for near in affinity_terms.with_all]
        is_first = not any(places.total for places in all_places) and self._chooses_itself(pod, affinity_terms)
        fine = np.ones(self._nodes.end, dtype=np.bool_)
        for places in all_places:
            fine &= places.labelled() if is_first else places.at()
        return ~fine

    def _chooses_itself(self, pod: ApiPod, affinity_terms: AffinityTerms) -> bool:
        labels = self._namespaces.labels(pod.namespace)
        return all(each.chooses(pod.namespace, labels, pod.metadata.labels) for each in affinity_terms.choosers)

    def _too_near(self, affinity_terms: AffinityTerms) -> Flags | None:
        found: Flags | None = None
        for near in affinity_terms.with_none:
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
