"""What the pods that are on nodes say of others: the terms that they hold, found by the pods that they are about."""

from __future__ import annotations

from collections.abc import Iterator

from partage_scheduler.predicates.choosing import Labels
from partage_scheduler.predicates.kinds import ByHandle, Pair
from partage_scheduler.predicates.namespaces import Namespaces
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.places import Places, Tally
from partage_scheduler.predicates.wishes import Near


class Term:
    """A term, and where the pods are that hold it; `weight` is what it adds where it is a mere preference."""

    __slots__ = ("near", "tally", "weight")

    def __init__(self, near: Near, weight: int, nodes: Nodes) -> None:
        self.near, self.weight, self.tally = near, weight, Tally(nodes)

    @property
    def handle(self) -> Pair | None:
        """A label that all pods have that it is about."""
        return self.near.chooser.handle

    def places(self) -> Places:
        """Where it is held."""
        return self.tally.places(self.near.topology_key)


class Terms:
    """All terms that are held."""

    def __init__(self, nodes: Nodes, namespaces: Namespaces) -> None:
        self._nodes, self._namespaces = nodes, namespaces
        self._terms: dict[tuple[Near, int], Term] = {}
        self._by_handle = ByHandle[Term]()

    def __len__(self) -> int:
        return len(self._terms)

    def take(self, slot: int, near: Near, weight: int = 0) -> None:
        """One more pod on that node holds it."""
        term = self._terms.get((near, weight))
        if term is None:
            term = self._terms[near, weight] = Term(near, weight, self._nodes)
            self._by_handle.add(term)
        term.tally.add(slot, 1)

    def give_back(self, slot: int, near: Near, weight: int = 0) -> None:
        """One pod less."""
        term = self._terms[near, weight]
        term.tally.add(slot, -1)
        if not term.tally:
            del self._terms[near, weight]
            self._by_handle.remove(term)

    def about(self, namespace: str, labels: Labels) -> Iterator[Term]:
        """The terms that are about a pod with these labels in this namespace."""
        if not self._terms:
            return
        of_namespace = self._namespaces.labels(namespace)
        for term in self._by_handle.candidates(labels.items()):
            if term.near.chooser.chooses(namespace, of_namespace, labels):
                yield term
