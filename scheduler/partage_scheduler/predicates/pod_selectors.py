"""Which pods a term or a constraint selects, by namespace and labels, as plain hashable values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from partage_scheduler.objects import ApiNamespace
from partage_scheduler.objects.selectors import LabelSelector, PodTerm, SpreadConstraint

OPERATORS: Final = frozenset(("In", "NotIn", "Exists", "DoesNotExist"))
Labels = Mapping[str, str]
_OBJECT_BYTES: Final = 256
"""Memory of a string and the objects around it, beside its characters."""


class Requirement(NamedTuple):
    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:  # reported by `unsupported`
                return False


Selector = tuple[Requirement, ...]


def _bytes_of(texts: Iterable[str]) -> int:
    return sum(len(text) + _OBJECT_BYTES for text in texts)


class PodSelector(NamedTuple):
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    """Further namespaces, by their labels; None for none."""
    selector: Selector | None
    """None selects no pod."""

    def chooses(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        if self.selector is None:
            return False
        if namespace not in self.namespaces and not (
            self.namespace_selector is not None and hold(self.namespace_selector, namespace_labels)
        ):
            return False
        return hold(self.selector, labels)

    @property
    def bytes(self) -> int:
        """Approximate memory use."""
        said = (*(self.selector or ()), *(self.namespace_selector or ()))
        return _bytes_of(self.namespaces) + sum(_bytes_of((each.key, *each.values)) for each in said)

    @property
    def within(self) -> frozenset[str] | None:
        """The namespaces of the selected pods; None if they may be in any."""
        return self.namespaces if self.namespace_selector is None else None

    @property
    def handle(self) -> tuple[str, str] | None:
        """A label that every selected pod has, as a key for an index; None if there is none."""
        for requirement in self.selector or ():
            if requirement.operator == "In" and len(requirement.values) == 1:
                (value,) = requirement.values
                return requirement.key, value
        return None


def hold(selector: Selector, labels: Labels) -> bool:
    """An empty selector always holds."""
    return all(requirement.holds(labels) for requirement in selector)


def selector_of(selector: LabelSelector | None) -> Selector | None:
    """None, which selects no pod, for no selector."""
    if selector is None:
        return None
    by_label = [Requirement(key, "In", frozenset((value,))) for key, value in selector.match_labels.items()]
    others = [Requirement(each.key, each.operator, frozenset(each.values)) for each in selector.match_expressions]
    return tuple(sorted((*by_label, *others), key=_order))


def of_term(term: PodTerm, namespace: str, labels: Labels) -> PodSelector:
    """The pods that a term selects, held by a pod with these labels in this namespace."""
    selector = selector_of(term.label_selector)
    if selector is not None:
        selector = _merged(selector, term.match_label_keys, "In", labels)
        selector = _merged(selector, term.mismatch_label_keys, "NotIn", labels)
    return PodSelector(
        namespaces=frozenset(term.namespaces)
        if term.namespaces or term.namespace_selector is not None
        else frozenset((namespace,)),
        namespace_selector=selector_of(term.namespace_selector),
        selector=selector,
    )


def of_constraint(constraint: SpreadConstraint, namespace: str, labels: Labels) -> PodSelector:
    """The pods to spread, all in the pod's own namespace.

    An empty selector counts no other pod, but counts the pod itself, as in kube-scheduler.
    """
    selector = selector_of(constraint.label_selector)
    if selector is not None:
        selector = _merged(selector, constraint.match_label_keys, "In", labels)
    return PodSelector(frozenset((namespace,)) if selector else frozenset(), None, selector)


def _merged(selector: Selector, keys: Iterable[str], operator: str, labels: Labels) -> Selector:
    """Adds the pod's own values of some labels, unless the API server has already done so."""
    there = {requirement.key for requirement in selector if requirement.operator == operator}
    more = [Requirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels and key not in there]
    return tuple(sorted((*selector, *more), key=_order))


def _order(requirement: Requirement) -> tuple[str, str, list[str]]:
    return requirement.key, requirement.operator, sorted(requirement.values)


_NONE: Final[Labels] = {}


class Namespaces:
    """Labels of namespaces; an unknown namespace has none."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}

    def put(self, namespace: ApiNamespace) -> bool:
        """Returns whether the known labels changed."""
        name, labels = namespace.name, namespace.metadata.labels
        changed = self.labels(name) != labels
        self._labels[name] = labels
        return changed

    def remove(self, name: str) -> bool:
        """Returns whether the known labels changed."""
        return bool(self._labels.pop(name, None))

    def labels(self, name: str) -> Labels:
        return self._labels.get(name, _NONE)
