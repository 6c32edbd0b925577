"""Affinity terms of the pods on nodes, indexed by the pods that they select.

The combined result of many terms for a pod is cached for the next pod with equal namespace and labels, until a term
comes or goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

from numpy.typing import NDArray

from partage_scheduler.predicates.affinity_terms import RequiredTerm
from partage_scheduler.predicates.label_sets import ByHandle, Pair
from partage_scheduler.predicates.memo import Memo
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.pod_selectors import Labels, Namespaces
from partage_scheduler.predicates.topology_domains import Tally, TopologyDomains

A = TypeVar("A", bound=NDArray[Any])
_FEW: Final = 8
"""Up to this many terms are evaluated each time instead of cached."""


class Term:
    """A term, and where the pods with it are; `weight` is what a preference adds."""

    __slots__ = ("near", "tally", "weight")

    def __init__(self, near: RequiredTerm, weight: int, nodes: Nodes) -> None:
        self.near, self.weight, self.tally = near, weight, Tally(nodes)

    @property
    def handle(self) -> Pair | None:
        return self.near.chooser.handle

    @property
    def within(self) -> frozenset[str] | None:
        return self.near.chooser.within

    def places(self) -> TopologyDomains:
        return self.tally.places(self.near.topology_key)


class Terms(Generic[A]):
    """All terms of one sort that pods on nodes have, and their combined result as an array by slot."""

    def __init__(self, nodes: Nodes, namespaces: Namespaces, together: Callable[[Iterable[Term]], A]) -> None:
        self._nodes, self._namespaces, self._together = nodes, namespaces, together
        self._terms: dict[tuple[RequiredTerm, int], Term] = {}
        self._by_handle = ByHandle[Term]()
        self._said = Memo[A](nodes)

    def __len__(self) -> int:
        return len(self._terms)

    def take(self, slot: int, near: RequiredTerm, weight: int = 0) -> None:
        self._said.forget()
        term = self._terms.get((near, weight))
        if term is None:
            term = self._terms[near, weight] = Term(near, weight, self._nodes)
            self._by_handle.add(term)
        term.tally.add(slot, 1)

    def give_back(self, slot: int, near: RequiredTerm, weight: int = 0) -> None:
        self._said.forget()
        term = self._terms[near, weight]
        term.tally.add(slot, -1)
        if not term.tally:
            del self._terms[near, weight]
            term.tally.forget()
            self._by_handle.remove(term)

    def namespaces_changed(self) -> None:
        """Drops cached results: terms may now select other pods."""
        self._said.forget()

    def said_of(self, namespace: str, labels: Labels) -> A | None:
        """Combined result of the terms that select such a pod; None if there are none."""
        candidates = self._by_handle.candidates(namespace, labels.items())
        if not candidates:
            return None
        if len(candidates) <= _FEW:
            about = self._about(candidates, namespace, labels)
            return self._together(about) if about else None
        return self._said.of(
            (namespace, sorted(labels.items())), lambda: self._together(self._about(candidates, namespace, labels))
        )

    def _about(self, candidates: Iterable[Term], namespace: str, labels: Labels) -> list[Term]:
        of_namespace = self._namespaces.labels(namespace)
        return [term for term in candidates if term.near.chooser.chooses(namespace, of_namespace, labels)]
