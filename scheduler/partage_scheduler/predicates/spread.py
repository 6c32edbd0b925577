"""Pod topology spread constraints (`topologySpreadConstraints`, `DoNotSchedule`).

Topology domains are those of the nodes that count: they have the labels of all constraints, and where a constraint says
so the pod selects them and tolerates their taints. Pods that are being deleted don't count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates.affinity_terms import AffinityTerms, Spread
from partage_scheduler.predicates.label_sets import LabelSetIndex
from partage_scheduler.predicates.memo import digest
from partage_scheduler.predicates.nodes import NOWHERE, Nodes
from partage_scheduler.predicates.pod_selectors import hold
from partage_scheduler.predicates.selectors import Selectors, asked_of_nodes
from partage_scheduler.predicates.taints import Tainted
from partage_scheduler.predicates.topology_domains import TopologyDomains

UNEVEN: Final = Reason("spread", "node(s) didn't match pod topology spread constraints")
UNLABELLED: Final = Reason(
    "spread-label-missing", "node(s) didn't match pod topology spread constraints (missing required label)"
)


class SpreadRules:
    """How pods are spread now, and where one more would exceed the skew."""

    def __init__(self, nodes: Nodes, kinds: LabelSetIndex, selectors: Selectors, tainted: Tainted) -> None:
        self._nodes, self._kinds, self._selectors, self._tainted = nodes, kinds, selectors, tainted

    def barred(self, pod: ApiPod, affinity_terms: AffinityTerms) -> list[FilteredNodes]:
        if not affinity_terms.spread:
            return []
        keys = topology_keys(affinity_terms.spread)
        found: list[FilteredNodes] = []
        out: Flags | None = None
        for spread in affinity_terms.spread:
            places = self.places(pod, spread, keys)
            for reason, flags in ((UNLABELLED, places.unlabelled()), (UNEVEN, _uneven(places, spread, pod))):
                if flags is not None:
                    found.append(FilteredNodes(reason, flags if out is None else flags & ~out))
                    out = flags if out is None else out | flags
        return found if len(affinity_terms.spread) == 1 else _told_once(found)

    def places(self, pod: ApiPod, spread: Spread, keys: tuple[str, ...]) -> TopologyDomains:
        """Counts of the selected pods by topology domain, over the nodes that count.

        `keys` are the labels that such nodes have.
        """
        tally = self._kinds.group((spread.chooser,), with_going=False).tally
        name = digest(
            (
                keys,
                asked_of_nodes(pod) if spread.honours_selectors else None,
                (pod.spec.tolerations, self._tainted.version) if spread.honours_taints else None,
            )
        )
        return tally.places(spread.topology_key, name=name, within=lambda: self._counting(pod, spread, keys))

    def _counting(self, pod: ApiPod, spread: Spread, keys: Sequence[str]) -> Flags:
        found = np.ones(self._nodes.end, dtype=np.bool_)
        for key in keys:
            found &= self._nodes.codes(key) >= 0
        if spread.honours_selectors and (selected := self._selectors.selected(pod)) is not None:
            found &= selected
        if spread.honours_taints and (tolerable := self._tainted.tolerable(pod.spec.tolerations)) is not None:
            found &= tolerable
        return found


def topology_keys(together: Sequence[Spread]) -> tuple[str, ...]:
    """The labels that nodes must have to count for constraints that are evaluated together."""
    return tuple(sorted({each.topology_key for each in together}))


def _uneven(places: TopologyDomains, spread: Spread, pod: ApiPod) -> Flags | None:
    """Nodes in whose domain one more pod would exceed the maximum skew."""
    fewest = _fewest(places.counts, places.existing(), spread.min_domains)
    selector = spread.chooser.selector
    itself = selector is not None and hold(selector, pod.metadata.labels)
    too_many = places.counts > spread.max_skew + fewest - int(itself)
    too_many[NOWHERE] = False
    return places.where(too_many) if too_many.any() else None


def _told_once(found: Sequence[FilteredNodes]) -> list[FilteredNodes]:
    """Merges the flags of equal reasons over all constraints."""
    by_reason: dict[Reason, Flags] = {}
    for each in found:
        before = by_reason.get(each.reason)
        by_reason[each.reason] = each.slots if before is None else before | each.slots
    return [FilteredNodes(reason, flags) for reason, flags in by_reason.items()]


def _fewest(counts: NDArray[np.int64], existing: Flags, min_domains: int) -> int:
    """Count of the emptiest domain; 0 while there are fewer domains than `min_domains`."""
    number = int(np.count_nonzero(existing))
    if number < max(min_domains, 1):
        return 0
    return int(counts.min(where=existing, initial=np.iinfo(np.int64).max))
