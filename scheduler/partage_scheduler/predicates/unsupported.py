"""Requests that this scheduler does not implement: it reports them and the pod waits, rather than guessing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from partage_scheduler.objects import ApiPod
from partage_scheduler.objects.selectors import Expression, LabelSelector, PodTerm
from partage_scheduler.predicates.affinity_terms import ANYWAY, DO_NOT
from partage_scheduler.predicates.needs import amount
from partage_scheduler.predicates.pod_selectors import OPERATORS

_OF_NODES: Final = OPERATORS | {"Gt", "Lt"}
_OF_TOLERATIONS: Final = frozenset(("", "Equal", "Exists"))
_POLICIES: Final = frozenset(("Honor", "Ignore"))
_UNREADABLE: Final = -1
_CLAIMS: Final = (
    "pod has resource claims (DRA), which this scheduler does not allocate: let kube-scheduler place it with partage "
    "as its extender"
)
_GROUP: Final = (
    "pod belongs to a pod group (spec.schedulingGroup), which this scheduler does not bind as one: say "
    "partage.dev/gang and partage.dev/gang-size instead"
)


def lacking(pod: ApiPod, *, allocates_claims: bool = False) -> str | None:
    """The first thing that the pod requests and that is not implemented here, regardless of nodes."""
    if pod.spec.resource_claims and not allocates_claims:
        return _CLAIMS
    if pod.spec.scheduling_group is not None:
        return _GROUP
    return next(_disks(pod), None) or _words(pod) or next(_amounts(pod), None)


def _disks(pod: ApiPod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        kinds = {
            "gcePersistentDisk": volume.gce_persistent_disk,
            "awsElasticBlockStore": volume.aws_elastic_block_store,
            "iscsi": volume.iscsi,
            "rbd": volume.rbd,
        }
        for kind, disk in kinds.items():
            if disk is not None:
                yield (
                    f'volume "{volume.name}" is a disk of kind {kind} in the pod itself, and this scheduler does not '
                    "keep its users apart: use a PersistentVolumeClaim"
                )


def _words(pod: ApiPod) -> str | None:
    for toleration in pod.spec.tolerations:
        if toleration.operator not in _OF_TOLERATIONS:
            return _unknown("toleration operator", toleration.operator)
    if pod.spec.affinity is None and not pod.spec.topology_spread_constraints:
        return None
    return next(_of_nodes(pod), None) or next(_of_pods(pod), None) or next(_of_spreading(pod), None)


def _of_nodes(pod: ApiPod) -> Iterator[str]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None:
        return
    terms = [*(affinity.required.node_selector_terms if affinity.required is not None else ())]
    terms += [each.preference for each in affinity.preferred]
    for term in terms:
        yield from _expressions(term.match_expressions, _OF_NODES)
        yield from _expressions(term.match_fields, frozenset(("In", "NotIn")))


def _of_pods(pod: ApiPod) -> Iterator[str]:
    for term in _terms(pod):
        yield from _selector(term.label_selector)
        yield from _selector(term.namespace_selector)


def _terms(pod: ApiPod) -> Iterator[PodTerm]:
    if pod.spec.affinity is None:
        return
    for affinity in (pod.spec.affinity.pod_affinity, pod.spec.affinity.pod_anti_affinity):
        if affinity is not None:
            yield from affinity.required
            yield from (each.pod_affinity_term for each in affinity.preferred)


def _of_spreading(pod: ApiPod) -> Iterator[str]:
    for each in pod.spec.topology_spread_constraints:
        if each.when_unsatisfiable not in {DO_NOT, ANYWAY}:
            yield _unknown("whenUnsatisfiable", each.when_unsatisfiable)
        for policy in (each.node_affinity_policy, each.node_taints_policy):
            if policy not in _POLICIES:
                yield _unknown("node inclusion policy", policy)
        yield from _selector(each.label_selector)


def _selector(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from _expressions(selector.match_expressions, OPERATORS)


def _expressions(expressions: Iterable[Expression], known: frozenset[str]) -> Iterator[str]:
    for each in expressions:
        if each.operator not in known:
            yield _unknown("operator", each.operator)


def _amounts(pod: ApiPod) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            for name, text in amounts.items():
                if amount(name, text, _UNREADABLE) == _UNREADABLE:
                    yield f"container {container.name} asks for {text[:63]!r} of {name[:63]}, which is no amount"


def _unknown(what: str, word: str) -> str:
    return f"{what} {word[:63]!r} is not known to this scheduler"
