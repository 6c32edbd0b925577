"""Namespaces and their labels."""

from __future__ import annotations

from typing import Final

from partage_scheduler.objects import ApiNamespace
from partage_scheduler.predicates.choosing import Labels

_NONE: Final[Labels] = {}


class Namespaces:
    """What is known of namespaces; one that is not known has no labels."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}

    def put(self, namespace: ApiNamespace) -> bool:
        """It is so now; whether anything changed."""
        name, labels = namespace.name, namespace.metadata.labels
        changed = self.labels(name) != labels
        self._labels[name] = labels
        return changed

    def remove(self, name: str) -> bool:
        """It is gone; whether anything changed."""
        return bool(self._labels.pop(name, None))

    def labels(self, name: str) -> Labels:
        """Its labels."""
        return self._labels.get(name, _NONE)
