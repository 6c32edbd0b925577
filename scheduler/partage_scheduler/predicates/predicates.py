"""All predicates behind one class: updated with nodes, pods and storage, queried for where a pod can't run."""

from __future__ import annotations

from typing import Final, NamedTuple

from partage_plugins.answers import Scores
from partage_plugins.api import PodUid, Slot
from partage_plugins.api.keys import PREFIX
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import (
    ApiClaim,
    ApiCsiNode,
    ApiNamespace,
    ApiNode,
    ApiPod,
    ApiStorageClass,
    ApiVolume,
)
from partage_scheduler.predicates.affinity_terms import AffinityTermReader, AffinityTerms
from partage_scheduler.predicates.amounts import OtherResources
from partage_scheduler.predicates.attachments import Attached
from partage_scheduler.predicates.images import Images
from partage_scheduler.predicates.inter_pod_affinity import InterPodAffinity
from partage_scheduler.predicates.label_sets import LabelSetIndex, LabelSetKey
from partage_scheduler.predicates.needs import Counted, asked_by, leaving_out
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.pod_selectors import Namespaces
from partage_scheduler.predicates.ports import HostPort, Ports, host_ports
from partage_scheduler.predicates.preferences import PreferenceScorer
from partage_scheduler.predicates.selectors import Selectors
from partage_scheduler.predicates.spread import SpreadRules
from partage_scheduler.predicates.storage import ClaimKey, Storage, claims_of
from partage_scheduler.predicates.taints import Tainted
from partage_scheduler.predicates.unsupported import lacking
from partage_scheduler.predicates.volumes import VolumeTopology

OURS: Final = (PREFIX,)
"""Resource names, or prefixes of them, that plugins handle; nodes do not advertise them."""


class _Present(NamedTuple):
    slot: int
    kind: LabelSetKey
    asked: Counted
    ports: tuple[HostPort, ...]
    affinity_terms: AffinityTerms
    claims: tuple[ClaimKey, ...]


class Predicates:
    """kube-scheduler's filters, except for CPU and memory, which the decider counts."""

    def __init__(self, *, ours: tuple[str, ...] = OURS, allocates_claims: bool = False) -> None:
        self._ours, self._allocates_claims = ours, allocates_claims
        self._present: dict[PodUid, _Present] = {}
        self._by_slot: dict[int, dict[PodUid, None]] = {}
        self._nodes, self._namespaces, self._storage = Nodes(), Namespaces(), Storage()
        self._tainted, self._rest, self._ports = Tainted(), OtherResources(), Ports()
        self._selectors = Selectors(self._nodes)
        self._kinds = LabelSetIndex(self._nodes, self._namespaces)
        self._inter_pod_affinity = InterPodAffinity(self._nodes, self._namespaces, self._kinds)
        self._spreading = SpreadRules(self._nodes, self._kinds, self._selectors, self._tainted)
        self._images = Images()
        self._preferring = PreferenceScorer(
            self._nodes,
            self._namespaces,
            self._kinds,
            tainted=self._tainted,
            spreading=self._spreading,
            images=self._images,
        )
        self._reach = VolumeTopology(self._nodes, self._storage, self._selectors)
        self._attached = Attached(self._nodes, self._storage)
        self._affinity_terms = AffinityTermReader()

    def put_node(self, slot: Slot, node: ApiNode) -> None:
        self._nodes.put(slot, node)
        self._tainted.put(slot, node)
        self._rest.put(slot, node)
        self._images.put(slot, node)

    def remove_node(self, slot: Slot) -> None:
        """Removes its pods, too."""
        for uid in tuple(self._by_slot.get(slot, ())):
            self.remove_pod(uid)
        self._nodes.remove(slot)
        self._tainted.remove(slot)
        self._rest.remove(slot)
        self._images.remove(slot)

    def free(self, slot: Slot, resource: str) -> int:
        """Free amount of an extended resource on a node."""
        return self._rest.free(slot, resource)

    def put_pod(self, slot: Slot, pod: ApiPod) -> None:
        """Adds or updates a pod on that node, bound or assumed, by any scheduler."""
        present = self._presence(slot, pod)
        before = self._present.get(pod.uid)
        if before == present:
            return
        if before is not None:
            self.remove_pod(pod.uid)
        self._present[pod.uid] = present
        self._by_slot.setdefault(slot, {})[pod.uid] = None
        self._kinds.take(slot, present.kind)
        self._rest.take(slot, present.asked)
        self._ports.take(slot, present.ports)
        self._inter_pod_affinity.take(slot, present.affinity_terms)
        self._preferring.take(slot, present.affinity_terms)
        self._reach.take(present.claims)
        self._attached.take(slot, pod.uid, present.claims)

    def remove_pod(self, uid: PodUid) -> None:
        """Ignores a pod that is on no node."""
        present = self._present.pop(uid, None)
        if present is None:
            return
        slot = present.slot
        del self._by_slot[slot][uid]
        self._kinds.give_back(slot, present.kind)
        self._rest.give_back(slot, present.asked)
        self._ports.give_back(slot, present.ports)
        self._inter_pod_affinity.give_back(slot, present.affinity_terms)
        self._preferring.give_back(slot, present.affinity_terms)
        self._reach.give_back(present.claims)
        self._attached.give_back(uid)

    def put_namespace(self, namespace: ApiNamespace) -> None:
        if self._namespaces.put(namespace):
            self._namespaces_changed()

    def remove_namespace(self, name: str) -> None:
        if self._namespaces.remove(name):
            self._namespaces_changed()

    def put_volume(self, volume: ApiVolume) -> None:
        self._storage.volumes[volume.name] = volume
        self._volume_changed(volume)

    def remove_volume(self, name: str) -> None:
        volume = self._storage.volumes.pop(name, None)
        if volume is not None:
            self._volume_changed(volume)

    def put_claim(self, claim: ApiClaim) -> None:
        self._storage.claims[claim.namespace, claim.name] = claim
        self._attached.changed((claim.namespace, claim.name))

    def remove_claim(self, namespace: str, name: str) -> None:
        self._storage.claims.pop((namespace, name), None)
        self._attached.changed((namespace, name))

    def put_storage_class(self, storage_class: ApiStorageClass) -> None:
        self._storage.classes[storage_class.name] = storage_class

    def remove_storage_class(self, name: str) -> None:
        self._storage.classes.pop(name, None)

    def put_csi_node(self, node: ApiCsiNode) -> None:
        self._attached.put_node(node)

    def remove_csi_node(self, name: str) -> None:
        self._attached.remove_node(name)

    def barred(self, pod: ApiPod, end: int) -> list[FilteredNodes]:
        """Where the pod can't run and why: kube-scheduler's filters, in its order and with its messages."""
        found = [
            *self._tainted.barred(pod),
            *self._selectors.barred(pod),
            *self._ports.barred(host_ports(pod), end),
            *self._rest.barred(leaving_out(asked_by(pod), self._ours), end),
        ]
        claims = claims_of(pod)
        if claims:
            found += self._reach.in_use(claims)
            found += self._attached.barred(claims, end)
            found += self._reach.barred(claims)
        affinity_terms = self._affinity_terms.of(pod)
        found += self._spreading.barred(pod, affinity_terms)
        found += self._inter_pod_affinity.barred(pod, affinity_terms)
        return found

    def absent(self, pod: ApiPod) -> tuple[str, ...]:
        """Resources that it requests, no node has, and no plugin handles."""
        return tuple(name for name in leaving_out(asked_by(pod), self._ours) if not self._rest.is_known(name))

    def unsupported(self, pod: ApiPod) -> str | None:
        """Why the pod must wait regardless of nodes; None if nothing prevents its scheduling."""
        return lacking(pod, allocates_claims=self._allocates_claims) or self._storage.waits_for(pod)

    def preferences(self, pod: ApiPod, end: int) -> Scores | None:
        """Higher is better; None where nothing is preferred."""
        return self._preferring.scores(pod, self._affinity_terms.of(pod), end)

    def _presence(self, slot: int, pod: ApiPod) -> _Present:
        meta = pod.metadata
        return _Present(
            slot=slot,
            kind=self._kinds.same(LabelSetKey(meta.namespace, frozenset(meta.labels.items()), pod.is_going)),
            asked=leaving_out(asked_by(pod), self._ours),
            ports=host_ports(pod),
            affinity_terms=self._affinity_terms.of(pod),
            claims=claims_of(pod),
        )

    def _namespaces_changed(self) -> None:
        self._kinds.namespaces_changed()
        self._inter_pod_affinity.namespaces_changed()
        self._preferring.namespaces_changed()

    def _volume_changed(self, volume: ApiVolume) -> None:
        claim = volume.spec.claim_ref
        if claim is not None:
            self._attached.changed((claim.namespace, claim.name))
