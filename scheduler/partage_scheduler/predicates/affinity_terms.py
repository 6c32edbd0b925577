"""A pod's terms about other pods, parsed once for all pods with equal terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from partage_plugins.cache import Cache, structure_bytes
from partage_scheduler.objects import ApiPod
from partage_scheduler.objects.selectors import PodAffinity, SpreadConstraint
from partage_scheduler.predicates.memo import digest_of
from partage_scheduler.predicates.pod_selectors import Labels, PodSelector, of_constraint, of_term

DO_NOT: Final = "DoNotSchedule"
ANYWAY: Final = "ScheduleAnyway"
_MOST_BYTES: Final = 16 << 20
_BY_LABELS: Final = b"atchLabelKeys"
"""In the encoded terms of a pod whose terms refer to its own values of some labels."""


class RequiredTerm(NamedTuple):
    """A pod selector, and the node label that defines the topology domain."""

    chooser: PodSelector
    topology_key: str


class PreferredTerm(NamedTuple):
    """A preferred term: affinity above 0, anti-affinity below."""

    near: RequiredTerm
    weight: int


class Spread(NamedTuple):
    chooser: PodSelector
    topology_key: str
    max_skew: int
    min_domains: int
    honours_selectors: bool
    """Only nodes that the pod selects count."""
    honours_taints: bool
    """Only nodes whose taints the pod tolerates count."""


class AffinityTerms(NamedTuple):
    with_all: tuple[RequiredTerm, ...] = ()
    with_none: tuple[RequiredTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    liked: tuple[PreferredTerm, ...] = ()
    spread_anyway: tuple[Spread, ...] = ()

    @property
    def choosers(self) -> tuple[PodSelector, ...]:
        """Selectors of its required affinity: only pods that all of them select count."""
        return tuple(near.chooser for near in self.with_all)


NONE: Final = AffinityTerms()


class AffinityTermReader:
    def __init__(self) -> None:
        self._read = Cache[bytes, AffinityTerms](_MOST_BYTES)

    @property
    def bytes(self) -> int:
        return self._read.bytes

    def of(self, pod: ApiPod) -> AffinityTerms:
        spec = pod.spec
        affinity = spec.affinity
        has_terms = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity)
        if not has_terms and not spec.topology_spread_constraints:
            return NONE
        said = msgspec.json.encode((pod.namespace, affinity, spec.topology_spread_constraints))
        if _BY_LABELS in said:
            said += msgspec.json.encode(pod.metadata.labels)
        key = digest_of(said)
        found = self._read.get(key)
        if found is None:
            found = read(pod)
            self._read.put(key, found, structure_bytes(len(said)))
        return found


def read(pod: ApiPod) -> AffinityTerms:
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return AffinityTerms(
        with_all=_required(near, pod),
        with_none=_required(apart, pod),
        spread=_spread(pod, DO_NOT),
        liked=(*_preferred(near, pod, 1), *_preferred(apart, pod, -1)),
        spread_anyway=_spread(pod, ANYWAY),
    )


def _required(affinity: PodAffinity | None, pod: ApiPod) -> tuple[RequiredTerm, ...]:
    terms = affinity.required if affinity is not None else ()
    return tuple(RequiredTerm(of_term(term, pod.namespace, pod.metadata.labels), term.topology_key) for term in terms)


def _preferred(affinity: PodAffinity | None, pod: ApiPod, sign: int) -> tuple[PreferredTerm, ...]:
    preferred = affinity.preferred if affinity is not None else ()
    return tuple(
        PreferredTerm(
            RequiredTerm(
                of_term(each.pod_affinity_term, pod.namespace, pod.metadata.labels), each.pod_affinity_term.topology_key
            ),
            sign * each.weight,
        )
        for each in preferred
    )


def _spread(pod: ApiPod, when: str) -> tuple[Spread, ...]:
    labels: Mapping[str, str] = pod.metadata.labels
    chosen = (each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == when)
    return tuple(_constraint(each, pod.namespace, labels) for each in chosen)


def _constraint(each: SpreadConstraint, namespace: str, labels: Labels) -> Spread:
    return Spread(
        chooser=of_constraint(each, namespace, labels),
        topology_key=each.topology_key,
        max_skew=each.max_skew,
        min_domains=1 if each.min_domains is None else each.min_domains,
        honours_selectors=each.node_affinity_policy == "Honor",
        honours_taints=each.node_taints_policy == "Honor",
    )
