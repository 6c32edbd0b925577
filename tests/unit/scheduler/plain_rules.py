"""A slow and obvious model of the predicates: one pod, one node, plain Python, everything recounted each time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from partage_plugins.codecs import parse_quantity
from partage_scheduler.objects import ApiClaim, ApiNode, ApiPod, ApiVolume, Taint
from partage_scheduler.objects.selectors import (
    Expression,
    LabelSelector,
    NodeTerm,
    PodTerm,
    SpreadConstraint,
    Toleration,
)
from partage_scheduler.objects.specs import Container

Labels = Mapping[str, str]


@dataclass
class Cluster:
    nodes: dict[int, ApiNode] = field(default_factory=dict)
    pods: dict[str, tuple[int, ApiPod]] = field(default_factory=dict)
    namespaces: dict[str, Labels] = field(default_factory=dict)
    claims: dict[tuple[str, str], ApiClaim] = field(default_factory=dict)
    volumes: dict[str, ApiVolume] = field(default_factory=dict)
    most_volumes: dict[str, dict[str, int]] = field(default_factory=dict)

    def on(self, slot: int) -> list[ApiPod]:
        return [pod for where, pod in self.pods.values() if where == slot]

    def placed(self) -> list[tuple[ApiPod, ApiNode]]:
        return [(pod, self.nodes[slot]) for slot, pod in self.pods.values()]


def barred(cluster: Cluster, pod: ApiPod) -> dict[str, set[int]]:
    """The slots of the nodes on which the pod can't run, by reason."""
    found: dict[str, set[int]] = {}
    for slot, node in cluster.nodes.items():
        for rule in RULES:
            for reason in rule(cluster, pod, node, slot):
                found.setdefault(reason, set()).add(slot)
    return found


# --- taints and node selection


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    for each in tolerations:
        if each.effect not in {"", taint.effect} or each.key not in {"", taint.key}:
            continue
        if each.operator == "Exists" or each.value == taint.value:
            return True
    return False


def cordon(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if node.spec.unschedulable and not tolerated(pod.spec.tolerations, taint):
        yield "node(s) were unschedulable"


def untolerated(pod: ApiPod, node: ApiNode) -> Taint | None:
    for taint in node.spec.taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerated(pod.spec.tolerations, taint):
            return taint
    return None


def taints(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    taint = untolerated(pod, node)
    if taint is not None:
        yield f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"


def is_so(asked: Expression, labels: Labels) -> bool:
    value = labels.get(asked.key)
    match asked.operator:
        case "In":
            return value in asked.values
        case "NotIn":
            return value not in asked.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return value is not None and compared(asked.operator, value, asked.values)


def compared(operator: str, value: str, values: tuple[str, ...]) -> bool:
    try:
        return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    except ValueError:
        return False


def term_is_so(term: NodeTerm, node: ApiNode) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.name}
    return all(is_so(each, node.metadata.labels) for each in term.match_expressions) and all(
        is_so(each, fields) for each in term.match_fields
    )


def labels_are_so(term: NodeTerm, node: ApiNode) -> bool:
    """Matching as for volumes: fields are ignored."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(is_so(each, node.metadata.labels) for each in term.match_expressions)


def is_selected(pod: ApiPod, node: ApiNode) -> bool:
    if any(node.metadata.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(term_is_so(term, node) for term in affinity.required.node_selector_terms)


def selector(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    if not is_selected(pod, node):
        why = "node(s) didn't match Pod's node affinity/selector"
        names = named(pod)
        known = {each.name for each in cluster.nodes.values()}
        yield f"{why}: no node is named {' or '.join(names[:3])}" if names and known.isdisjoint(names) else why


def named(pod: ApiPod) -> list[str]:
    """The nodes to which the pod is restricted by name; empty if it may run on others."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    found = list[str]()
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        names = [name for each in term.match_fields if each.operator == "In" for name in each.values]
        if not names:
            return []
        found += names
    return found


# --- resources


def number(name: str, text: str) -> int:
    amount: Fraction = parse_quantity(text)
    return math.ceil(amount * 1000 if name == "cpu" else amount)


def asked(container: Container) -> Counter[str]:
    texts = {**container.resources.limits, **container.resources.requests}
    return Counter({name: number(name, text) for name, text in texts.items()})


def needed(pod: ApiPod) -> Counter[str]:
    """The maximum during startup or while everything runs, as the enhancement for sidecars defines it."""
    inits = pod.spec.init_containers
    is_sidecar = [each.restart_policy == "Always" for each in inits]
    moments = []
    for place, container in enumerate(inits):
        before = [asked(each) for each, stays in zip(inits[:place], is_sidecar[:place], strict=True) if stays]
        moments.append(sum(before, asked(container)))
    staying = [asked(each) for each, stays in zip(inits, is_sidecar, strict=True) if stays]
    moments.append(sum([*staying, *map(asked, pod.spec.containers)], Counter[str]()))
    most = Counter[str]()
    for moment in moments:
        most |= moment
    for name, text in (pod.spec.resources.requests if pod.spec.resources else {}).items():
        most[name] = number(name, text)
    return most + Counter({name: number(name, text) for name, text in pod.spec.overhead.items()})


def amounts(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    there = cluster.on(slot)
    allocatable = {name: number(name, text) for name, text in node.status.allocatable.items()}
    if len(there) + 1 > allocatable.get("pods", 0):
        yield "Too many pods"
    used = sum(map(needed, there), Counter[str]())
    for name, wanted in needed(pod).items():
        if name in {"cpu", "memory"} or name.startswith("partage.dev/"):
            continue
        if wanted > allocatable.get(name, 0) - used[name]:
            yield f"Insufficient {name}"


def ports_of(pod: ApiPod) -> list[tuple[str, int, str]]:
    containers = [*pod.spec.containers, *(each for each in pod.spec.init_containers if each.restart_policy == "Always")]
    return [
        (port.protocol, port.host_port, port.host_ip or "0.0.0.0")  # noqa: S104
        for container in containers
        for port in container.ports
        if port.host_port
    ]


def ports(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    for protocol, port, address in ports_of(pod):
        for other in cluster.on(slot):
            for other_protocol, other_port, other_address in ports_of(other):
                meets = address == other_address or "0.0.0.0" in (address, other_address)  # noqa: S104
                if (protocol, port) == (other_protocol, other_port) and meets:
                    yield "node(s) didn't have free ports for the requested pod ports"
                    return


# --- volumes


def volumes_of(cluster: Cluster, pod: ApiPod) -> list[ApiVolume]:
    keys = [(pod.namespace, each.persistent_volume_claim.claim_name) for each in pod.spec.volumes]  # type: ignore[union-attr]
    return [cluster.volumes[cluster.claims[key].spec.volume_name] for key in keys]


def claims_in_use(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    used = {
        (other.namespace, each.persistent_volume_claim.claim_name)  # type: ignore[union-attr]
        for _, other in cluster.pods.values()
        for each in other.spec.volumes
    }
    for each in pod.spec.volumes:
        key = pod.namespace, each.persistent_volume_claim.claim_name  # type: ignore[union-attr]
        if "ReadWriteOncePod" in cluster.claims[key].spec.access_modes and key in used:
            yield "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
            return


def attached(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    def handles(each: ApiPod) -> set[tuple[str, str]]:
        sources = (volume.spec.csi for volume in volumes_of(cluster, each))
        return {(source.driver, source.volume_handle) for source in sources if source}

    there = set[tuple[str, str]]().union(*map(handles, cluster.on(slot)))
    more = handles(pod) - there
    for driver, most in cluster.most_volumes.get(node.name, {}).items():
        new = sum(each[0] == driver for each in more)
        if new and new + sum(each[0] == driver for each in there) > most:
            yield "node(s) exceed max volume count"
            return


def reach(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    for volume in volumes_of(cluster, pod):
        affinity = volume.spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity and affinity.required else None
        if terms is not None and not any(labels_are_so(term, node) for term in terms):
            yield "node(s) didn't match PersistentVolume's node affinity"
            return


def zones(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    today = {
        f"failure-domain.beta.kubernetes.io/{what}": f"topology.kubernetes.io/{what}" for what in ("zone", "region")
    }
    keys = {*today, *today.values()}
    if not keys & set(node.metadata.labels):
        return
    for volume in volumes_of(cluster, pod):
        for key, text in volume.metadata.labels.items():
            here = node.metadata.labels.get(key, node.metadata.labels.get(today.get(key, key)))
            if key in keys and here not in text.split("__"):
                yield "node(s) had no available volume zone"
                return


# --- other pods


def matches(wanted: LabelSelector | None, labels: Labels) -> bool:
    if wanted is None:
        return False
    return all(labels.get(key) == value for key, value in wanted.match_labels.items()) and all(
        is_so(each, labels) for each in wanted.match_expressions
    )


def is_about(cluster: Cluster, term: PodTerm, owner: ApiPod, other: ApiPod) -> bool:
    labels = cluster.namespaces.get(other.namespace, {})
    named = term.namespaces or (() if term.namespace_selector is not None else (owner.namespace,))
    if other.namespace not in named and not (
        term.namespace_selector is not None and matches(term.namespace_selector, labels)
    ):
        return False
    own = owner.metadata.labels
    return (
        matches(term.label_selector, other.metadata.labels)
        and all(other.metadata.labels.get(key) == own[key] for key in own_keys(term.match_label_keys, term, own))
        and all(
            other.metadata.labels.get(key) != own[key] for key in own_keys(term.mismatch_label_keys, term, own, "NotIn")
        )
    )


def own_keys(keys: tuple[str, ...], of: PodTerm | SpreadConstraint, own: Labels, operator: str = "In") -> Iterable[str]:
    """The keys that the API server did not merge into the selector when the pod was created."""
    there = of.label_selector or LabelSelector()
    put_in = {each.key for each in there.match_expressions if each.operator == operator}
    put_in |= set(there.match_labels) if operator == "In" else set()
    return [key for key in keys if key in own and key not in put_in]


def required(pod: ApiPod, which: str) -> tuple[PodTerm, ...]:
    affinity = getattr(pod.spec.affinity, which) if pod.spec.affinity else None
    return affinity.required if affinity else ()


def inter_pod_affinity(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    here = node.metadata.labels
    terms = required(pod, "pod_affinity")
    near = [
        {
            where.metadata.labels[term.topology_key]
            for other, where in cluster.placed()
            if all(is_about(cluster, each, pod, other) for each in terms) and term.topology_key in where.metadata.labels
        }
        for term in terms
    ]
    is_first = not any(near) and all(is_about(cluster, each, pod, pod) for each in terms)
    for term, values in zip(terms, near, strict=True):
        if term.topology_key not in here or (here[term.topology_key] not in values and not is_first):
            yield "node(s) didn't match pod affinity rules"
            break
    if any(
        is_about(cluster, term, pod, other) and shares(term.topology_key, node, where)
        for term in required(pod, "pod_anti_affinity")
        for other, where in cluster.placed()
    ):
        yield "node(s) didn't match pod anti-affinity rules"
    if any(
        is_about(cluster, term, other, pod) and shares(term.topology_key, node, where)
        for other, where in cluster.placed()
        for term in required(other, "pod_anti_affinity")
    ):
        yield "node(s) didn't satisfy existing pods anti-affinity rules"


def shares(key: str, one: ApiNode, other: ApiNode) -> bool:
    value = one.metadata.labels.get(key)
    return value is not None and value == other.metadata.labels.get(key)


def counts(cluster: Cluster, pod: ApiPod, constraint: SpreadConstraint) -> dict[str, int]:
    """The number of pods in each topology domain, over the nodes that count."""
    keys = [each.topology_key for each in hard(pod)]
    found: dict[str, int] = {}
    for slot, node in cluster.nodes.items():
        if any(key not in node.metadata.labels for key in keys):
            continue
        if constraint.node_affinity_policy == "Honor" and not is_selected(pod, node):
            continue
        if constraint.node_taints_policy == "Honor" and untolerated(pod, node):
            continue
        value = node.metadata.labels[constraint.topology_key]
        there = [other for other in cluster.on(slot) if spread_over(pod, constraint, other) and not other.is_going]
        if says_nothing(pod, constraint):
            there = []
        found[value] = found.get(value, 0) + len(there)
    return found


def hard(pod: ApiPod) -> list[SpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def spread_over(pod: ApiPod, constraint: SpreadConstraint, other: ApiPod) -> bool:
    own, labels = pod.metadata.labels, other.metadata.labels
    return (
        other.namespace == pod.namespace
        and matches(constraint.label_selector, labels)
        and all(labels.get(key) == own[key] for key in own_keys(constraint.match_label_keys, constraint, own))
    )


def says_nothing(pod: ApiPod, constraint: SpreadConstraint) -> bool:
    """Whether the constraint has a selector and it is empty: then it counts only the pod itself."""
    own = own_keys(constraint.match_label_keys, constraint, pod.metadata.labels)
    return constraint.label_selector == LabelSelector() and not own


def spreading(cluster: Cluster, pod: ApiPod, node: ApiNode, slot: int) -> Iterable[str]:
    for constraint in hard(pod):
        value = node.metadata.labels.get(constraint.topology_key)
        if value is None:
            yield "node(s) didn't match pod topology spread constraints (missing required label)"
            return
        found = counts(cluster, pod, constraint)
        fewest = 0 if len(found) < (constraint.min_domains or 1) else min(found.values())
        if found.get(value, 0) + spread_over(pod, constraint, pod) - fewest > constraint.max_skew:
            yield "node(s) didn't match pod topology spread constraints"
            return


Rule = Callable[[Cluster, ApiPod, ApiNode, int], Iterable[Any]]
RULES: tuple[Rule, ...] = (
    cordon,
    taints,
    selector,
    ports,
    amounts,
    claims_in_use,
    attached,
    reach,
    zones,
    spreading,
    inter_pod_affinity,
)
