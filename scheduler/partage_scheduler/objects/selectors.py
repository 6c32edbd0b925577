"""Selectors, affinity, spread constraints and tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import field

from partage_scheduler.objects.base import Int32, Object

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Expression(Object, frozen=True, kw_only=True):
    key: str
    operator: str
    """`In`, `NotIn`, `Exists`, `DoesNotExist`; for nodes also `Gt` and `Lt`."""
    values: tuple[str, ...] = ()


class LabelSelector(Object, frozen=True, kw_only=True):
    """All of it must hold; an empty one selects everything."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[Expression, ...] = ()


class NodeTerm(Object, frozen=True, kw_only=True):
    """All of it must hold for a node; an empty one selects none."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class NodeSelector(Object, frozen=True, kw_only=True):
    """One of the terms must hold."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class PreferredNodes(Object, frozen=True, kw_only=True):
    weight: Int32
    preference: NodeTerm


class NodeAffinity(Object, frozen=True, kw_only=True):
    required: NodeSelector | None = field(default=None, name=REQUIRED)
    preferred: tuple[PreferredNodes, ...] = field(default=(), name=PREFERRED)


class PodTerm(Object, frozen=True, kw_only=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    """None selects no pod."""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPods(Object, frozen=True, kw_only=True):
    weight: Int32
    pod_affinity_term: PodTerm


class PodAffinity(Object, frozen=True, kw_only=True):
    required: tuple[PodTerm, ...] = field(default=(), name=REQUIRED)
    preferred: tuple[PreferredPods, ...] = field(default=(), name=PREFERRED)


class Affinity(Object, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Object, frozen=True, kw_only=True):
    """How evenly the selected pods are spread over topology domains, the values of a label."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    """`DoNotSchedule` or `ScheduleAnyway`."""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class Toleration(Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
