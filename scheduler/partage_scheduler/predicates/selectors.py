"""Which nodes a pod selects by their labels and names (`nodeSelector` and required node affinity)."""

from __future__ import annotations

from typing import Final

import numpy as np

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.objects.selectors import NodeSelector
from partage_scheduler.predicates.memo import Memo
from partage_scheduler.predicates.node_terms import NAME_FIELD, any_term, selected
from partage_scheduler.predicates.nodes import Nodes

ANOTHER_NAME: Final = Reason("another-node-name", "node(s) didn't match the requested node name", lasts=True)
NOT_SELECTED: Final = Reason("node-affinity", "node(s) didn't match Pod's node affinity/selector", lasts=True)
NO_SUCH_NODE: Final = Reason(
    "no-such-node", "node(s) didn't match Pod's node affinity/selector: no node is named {}", lasts=True
)
_MOST_NAMES: Final = 3
_LONGEST_NAME: Final = 63


class Selectors:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._selected = Memo[Flags](nodes)

    def barred(self, pod: ApiPod) -> list[FilteredNodes]:
        found: list[FilteredNodes] = []
        if pod.spec.node_name:
            found.append(FilteredNodes(ANOTHER_NAME, self._other_than(pod.spec.node_name)))
        chosen = self.selected(pod)
        if chosen is not None:
            names = named_by(required_of(pod))
            is_there = not names or any(self._nodes.slot(name) is not None for name in names)
            found.append(FilteredNodes(NOT_SELECTED if is_there else NO_SUCH_NODE.of(_some(names)), ~chosen))
        return found

    def selected(self, pod: ApiPod) -> Flags | None:
        """None if the pod has neither a node selector nor required node affinity."""
        question = asked_of_nodes(pod)
        if question is None:
            return None
        return self._selected.of(question, lambda: selected(self._nodes, pod.spec.node_selector, required_of(pod)))

    def any_term(self, selector: NodeSelector) -> Flags:
        return self._selected.of(selector, lambda: any_term(self._nodes, selector))

    def _other_than(self, name: str) -> Flags:
        flags = np.ones(self._nodes.end, dtype=np.bool_)
        slot = self._nodes.slot(name)
        if slot is not None:
            flags[slot] = False
        return flags


def named_by(required: NodeSelector | None) -> list[str]:
    """Names of the nodes that required affinity restricts the pod to; empty if others are allowed, too."""
    of_terms = [
        [
            name
            for field in term.match_fields
            if (field.key, field.operator) == (NAME_FIELD, "In")
            for name in field.values
        ]
        for term in (required.node_selector_terms if required is not None else ())
    ]
    return [name for names in of_terms for name in names] if all(of_terms) else []


def _some(names: list[str]) -> str:
    return " or ".join(name[:_LONGEST_NAME] for name in names[:_MOST_NAMES])


def asked_of_nodes(pod: ApiPod) -> tuple[tuple[tuple[str, str], ...], NodeSelector | None] | None:
    """Equal for pods with equal node selection; None for a pod without any."""
    required = required_of(pod)
    if required is None and not pod.spec.node_selector:
        return None
    return tuple(sorted(pod.spec.node_selector.items())), required


def required_of(pod: ApiPod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.required
