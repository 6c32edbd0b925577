"""Where a pod's bound volumes can be reached, and claims that only one pod may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import replace

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import ApiVolume
from partage_scheduler.objects.selectors import Expression, NodeSelector
from partage_scheduler.predicates.memo import Memo
from partage_scheduler.predicates.node_terms import holds
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.selectors import Selectors
from partage_scheduler.predicates.storage import ClaimKey, Storage

IN_USE: Final = Reason(
    "claim-in-use", "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
OUT_OF_REACH: Final = Reason("volume-affinity", "node(s) didn't match PersistentVolume's node affinity")
OTHER_ZONE: Final = Reason("volume-zone", "node(s) had no available volume zone")
ONE_POD: Final = "ReadWriteOncePod"
_TODAY: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels for a volume's zone and region, and their current names."""
_SEVERAL: Final = "__"


class VolumeTopology:
    def __init__(self, nodes: Nodes, storage: Storage, selectors: Selectors) -> None:
        self._nodes, self._storage, self._selectors = nodes, storage, selectors
        self._used: dict[ClaimKey, int] = {}
        self._zones = Memo[Flags](nodes)

    def take(self, claims: Iterable[ClaimKey]) -> None:
        for key in claims:
            self._used[key] = self._used.get(key, 0) + 1

    def give_back(self, claims: Iterable[ClaimKey]) -> None:
        for key in claims:
            self._used[key] -= 1
            if not self._used[key]:
                del self._used[key]

    def in_use(self, claims: Iterable[ClaimKey]) -> list[FilteredNodes]:
        """All nodes, if another pod uses a claim with access mode `ReadWriteOncePod`."""
        for key in claims:
            claim = self._storage.claims.get(key)
            if claim is not None and ONE_POD in claim.spec.access_modes and key in self._used:
                return [FilteredNodes(IN_USE, np.ones(self._nodes.end, dtype=np.bool_))]
        return []

    def barred(self, claims: Iterable[ClaimKey]) -> list[FilteredNodes]:
        volumes = [volume for volume in map(self._storage.volume_of, claims) if volume is not None]
        within, beyond = self._within(volumes), self._beyond(volumes)
        found = [] if within is None else [FilteredNodes(OUT_OF_REACH, ~within)]
        return found if beyond is None else [*found, FilteredNodes(OTHER_ZONE, beyond)]

    def _within(self, volumes: Iterable[ApiVolume]) -> Flags | None:
        found: Flags | None = None
        for volume in volumes:
            affinity = volume.spec.node_affinity
            asked = _of_labels(affinity.required) if affinity is not None and affinity.required is not None else None
            if asked is not None:
                flags = self._selectors.any_term(asked)
                found = flags if found is None else found & flags
        return found

    def _beyond(self, volumes: Iterable[ApiVolume]) -> Flags | None:
        found: Flags | None = None
        for volume in volumes:
            for key in _TODAY:
                text = volume.metadata.labels.get(key)
                if text is not None:
                    flags = self._zones.of((key, text), partial(self._other_zone, key, text))
                    found = flags if found is None else found | flags
        return found

    def _other_zone(self, key: str, text: str) -> Flags:
        """Nodes in another zone; a node without any such label counts as being in every zone."""
        nodes, today = self._nodes, _TODAY[key]
        values = tuple(text.split(_SEVERAL))
        inside = holds(nodes, Expression(key=key, operator="In", values=values))
        if today != key:
            inside |= (nodes.codes(key) < 0) & holds(nodes, Expression(key=today, operator="In", values=values))
        says = np.zeros(nodes.end, dtype=np.bool_)
        for each in _TODAY:
            says |= nodes.codes(each) >= 0
        return says & ~inside


def _of_labels(selector: NodeSelector) -> NodeSelector | None:
    """Its label requirements: kube-scheduler and kubelet ignore fields here. None if a term has only fields."""
    terms = selector.node_selector_terms
    if any(term.match_fields and not term.match_expressions for term in terms):
        return None
    return NodeSelector(node_selector_terms=tuple(replace(term, match_fields=()) for term in terms))
