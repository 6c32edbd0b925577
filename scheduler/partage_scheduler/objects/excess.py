"""Size limits of pods, whoever wrote them: a pod beyond them is not kept as a whole.

Such a pod stays pending, with a message that names what it has too much of, how much, and what is allowed. `firsts`
defines what is kept of it, and what counts if others have placed it on a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from partage_scheduler.objects.base import Meta
from partage_scheduler.objects.selectors import Affinity, NodeTerm, PodTerm
from partage_scheduler.objects.specs import PodSpec

MOST_BYTES: Final = 320 << 10
"""256 KiB of annotations, which is what the API server allows, and 64 KiB of all else that is read."""
CONTAINERS: Final = 512
AMOUNTS: Final = 512
LABELS: Final = 256
ANNOTATIONS: Final = 1024
TOLERATIONS: Final = 512
PORTS: Final = 512
VOLUMES: Final = 512
OF_NODES: Final = 256
OF_PODS: Final = 32
REACHING: Final = 4
"""Limit of pod affinity terms that reach beyond the pod's namespace: each slows down all others' pods."""
EXPRESSIONS: Final = 512
VALUES: Final = 4096
_PLAIN_BYTES: Final = 1500
"""No shorter pod without terms can exceed a limit: each item takes at least three bytes."""


class _Terms(NamedTuple):
    of_nodes: int = 0
    of_pods: int = 0
    reaching: int = 0
    expressions: int = 0
    values: int = 0


def excess(meta: Meta, spec: PodSpec, size_bytes: int) -> str:
    """A message about the first limit that the pod exceeds; empty if there is none."""
    if size_bytes < _PLAIN_BYTES and spec.affinity is None and not spec.topology_spread_constraints:
        return ""
    for what, number, most in _counts(meta, spec):
        if number > most:
            return f"the pod has {number} {what}, and partage's scheduler reads {most} at most: write fewer"
    if size_bytes > MOST_BYTES:
        return (
            f"what partage's scheduler reads of the pod has {size_bytes} bytes, and {MOST_BYTES} are allowed: shorten "
            "its annotations, labels, terms and names"
        )
    return ""


def _counts(meta: Meta, spec: PodSpec) -> Iterable[tuple[str, int, int]]:
    containers = (*spec.init_containers, *spec.containers)
    yield "containers", len(containers), CONTAINERS
    amounts = [each.resources for each in containers]
    yield "amounts of resources", sum(len(each.limits) + len(each.requests) for each in amounts), AMOUNTS
    yield "ports", sum(len(each.ports) for each in containers), PORTS
    yield "labels", len(meta.labels), LABELS
    yield "annotations", len(meta.annotations), ANNOTATIONS
    yield "tolerations", len(spec.tolerations), TOLERATIONS
    yield "volumes", len(spec.volumes), VOLUMES
    if spec.affinity is None and not spec.topology_spread_constraints and not spec.node_selector:
        return
    terms = _terms(meta.namespace, spec)
    yield "terms about nodes", terms.of_nodes, OF_NODES
    yield "terms about other pods", terms.of_pods, OF_PODS
    yield "terms about pods of other namespaces", terms.reaching, REACHING
    yield "expressions in terms", terms.expressions, EXPRESSIONS
    yield "values in terms", terms.values, VALUES


def _terms(namespace: str, spec: PodSpec) -> _Terms:
    affinity = spec.affinity or Affinity()
    nodes = list(_node_terms(affinity))
    pods = list(_pod_terms(affinity))
    spread = spec.topology_spread_constraints
    selectors = [each.label_selector for each in pods] + [each.namespace_selector for each in pods]
    selectors += [each.label_selector for each in spread]
    said = [each for term in nodes for each in (*term.match_expressions, *term.match_fields)]
    labels = len(spec.node_selector)
    for selector in selectors:
        if selector is not None:
            said += selector.match_expressions
            labels += len(selector.match_labels)
    return _Terms(
        of_nodes=len(nodes),
        of_pods=len(pods) + len(spread),
        reaching=sum(reaches(each, namespace) for each in pods),
        expressions=labels + len(said) + sum(map(_names_in, pods)) + sum(len(each.match_label_keys) for each in spread),
        values=sum(len(each.values) for each in said),
    )


def reaches(term: PodTerm, namespace: str) -> bool:
    """Whether the term may select pods of other namespaces than the pod's own."""
    return term.namespace_selector is not None or any(each != namespace for each in term.namespaces)


def _names_in(term: PodTerm) -> int:
    return len(term.namespaces) + len(term.match_label_keys) + len(term.mismatch_label_keys)


def _node_terms(affinity: Affinity) -> Iterable[NodeTerm]:
    found = affinity.node_affinity
    if found is not None:
        if found.required is not None:
            yield from found.required.node_selector_terms
        yield from (each.preference for each in found.preferred)


def _pod_terms(affinity: Affinity) -> Iterable[PodTerm]:
    for found in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if found is not None:
            yield from found.required
            yield from (each.pod_affinity_term for each in found.preferred)
