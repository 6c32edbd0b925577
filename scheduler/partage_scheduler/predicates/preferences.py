"""Node scores from the preferences of the pod and of other pods: kube-scheduler's scores and their weights.

Each family scores from 0 to 100, normalized over all nodes, where kube-scheduler normalizes over those that fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import log
from typing import Final

import numpy as np

from partage_plugins.answers import Scores
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.affinity_terms import AffinityTerms
from partage_scheduler.predicates.images import Images
from partage_scheduler.predicates.label_sets import LabelSetIndex
from partage_scheduler.predicates.memo import Memo
from partage_scheduler.predicates.node_terms import term_holds
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.pod_selectors import Namespaces
from partage_scheduler.predicates.spread import SpreadRules, topology_keys
from partage_scheduler.predicates.taints import Tainted
from partage_scheduler.predicates.terms import Term, Terms

HIGHEST: Final = 100
TAINTS: Final = 3
NODES: Final = 2
PODS: Final = 2
SPREAD: Final = 2
IMAGES: Final = 1
"""Weight of each family."""
_REQUIRED_BY_OTHERS: Final = 1
"""Weight of a pod's required affinity for the pods that it selects."""


class PreferenceScorer:
    def __init__(  # noqa: PLR0913  (it joins what the families know)
        self,
        nodes: Nodes,
        namespaces: Namespaces,
        kinds: LabelSetIndex,
        *,
        tainted: Tainted,
        spreading: SpreadRules,
        images: Images,
    ) -> None:
        self._nodes, self._kinds = nodes, kinds
        self._tainted, self._spreading, self._images = tainted, spreading, images
        self._held = Terms[Scores](nodes, namespaces, self._weighed)
        self._of_nodes = Memo[Scores](nodes)

    def take(self, slot: int, affinity_terms: AffinityTerms) -> None:
        for near in affinity_terms.with_all:
            self._held.take(slot, near, _REQUIRED_BY_OTHERS)
        for liked in affinity_terms.liked:
            self._held.take(slot, liked.near, liked.weight)

    def give_back(self, slot: int, affinity_terms: AffinityTerms) -> None:
        for near in affinity_terms.with_all:
            self._held.give_back(slot, near, _REQUIRED_BY_OTHERS)
        for liked in affinity_terms.liked:
            self._held.give_back(slot, liked.near, liked.weight)

    def namespaces_changed(self) -> None:
        self._held.namespaces_changed()

    def scores(self, pod: ApiPod, affinity_terms: AffinityTerms, end: int) -> Scores | None:
        """Weighted sum over the families; None if none has a preference."""
        total: Scores | None = None
        for weight, scores in self._families(pod, affinity_terms):
            if scores is not None:
                if total is None:
                    total = np.zeros(max(end, self._nodes.end), dtype=np.float32)
                total[: self._nodes.end] += np.float32(weight) * scores
        return total

    def _families(self, pod: ApiPod, affinity_terms: AffinityTerms) -> Iterator[tuple[int, Scores | None]]:
        yield TAINTS, self._by_taints(pod)
        yield NODES, self._by_nodes(pod)
        yield PODS, self._by_pods(pod, affinity_terms)
        yield SPREAD, self._by_spread(pod, affinity_terms)
        yield IMAGES, self._images.scores(pod, max(len(self._nodes), 1), self._nodes.end)

    def _by_taints(self, pod: ApiPod) -> Scores | None:
        disliked = self._tainted.disliked(pod.spec.tolerations)
        return None if disliked is None else (HIGHEST - HIGHEST * disliked / disliked.max()).astype(np.float32)

    def _by_nodes(self, pod: ApiPod) -> Scores | None:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        if affinity is None or not affinity.preferred:
            return None
        preferred = affinity.preferred

        def weighed() -> Scores:
            total = np.zeros(self._nodes.end, dtype=np.float32)
            for each in preferred:
                total += np.float32(each.weight) * term_holds(self._nodes, each.preference)
            return total * np.float32(HIGHEST / max(float(total.max(initial=0)), 1))

        return self._of_nodes.of(preferred, weighed)

    def _by_pods(self, pod: ApiPod, affinity_terms: AffinityTerms) -> Scores | None:
        if not affinity_terms.liked and not self._held:
            return None
        total = np.zeros(self._nodes.end, dtype=np.float32)
        for liked in affinity_terms.liked:
            tally = self._kinds.group((liked.near.chooser,)).tally
            if tally:
                total += np.float32(liked.weight) * tally.places(liked.near.topology_key).by_slot()
        held = self._held.said_of(pod.namespace, pod.metadata.labels)
        if held is not None:
            total += held
        least, most = total.min(initial=0), total.max(initial=0)
        return (HIGHEST * (total - least) / (most - least)).astype(np.float32) if most > least else None

    def _weighed(self, terms: Iterable[Term]) -> Scores:
        """Scores that the terms of pods on nodes add to each node."""
        total = np.zeros(self._nodes.end, dtype=np.float32)
        for term in terms:
            total += np.float32(term.weight) * term.places().by_slot()
        return total

    def _by_spread(self, pod: ApiPod, affinity_terms: AffinityTerms) -> Scores | None:
        if not affinity_terms.spread_anyway:
            return None
        keys = topology_keys(affinity_terms.spread_anyway)
        total = np.zeros(self._nodes.end, dtype=np.float32)
        counting = np.ones(self._nodes.end, dtype=np.bool_)
        for spread in affinity_terms.spread_anyway:
            places = self._spreading.places(pod, spread, keys)
            weight = log(int(np.count_nonzero(places.existing())) + 2)
            total += np.float32(weight) * places.by_slot() + np.float32(spread.max_skew - 1)
            counting &= places.labelled()
        total = np.round(total)
        most = total.max(where=counting, initial=0)
        least = total.min(where=counting, initial=most)
        scores = HIGHEST * (most + least - total) / most if most else np.full_like(total, HIGHEST)
        return np.where(counting, scores, np.float32(0)).astype(np.float32)
