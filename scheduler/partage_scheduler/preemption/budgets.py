"""PodDisruptionBudgets: which pods can't be preempted without more disruptions than their owner allows.

Counted as upstream does for preemption: pods use up the allowed disruptions in order of importance, a pod whose
disruption the API server has already counted uses none, and a budget whose selector is empty, which means everything
elsewhere, selects nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from partage_scheduler.objects import ApiBudget, ApiPod
from partage_scheduler.predicates.pod_selectors import Selector, hold, selector_of


class _Counted(Struct, frozen=True):
    budget: ApiBudget
    selector: Selector

    def is_about(self, pod: ApiPod) -> bool:
        return hold(self.selector, pod.metadata.labels) and pod.name not in self.budget.status.disrupted_pods


class Budgets:
    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, _Counted]] = {}

    def put(self, budget: ApiBudget) -> None:
        self.remove(budget.namespace, budget.name)
        if selector := selector_of(budget.spec.selector):
            self._by_namespace.setdefault(budget.namespace, {})[budget.name] = _Counted(budget, selector)

    def remove(self, namespace: str, name: str) -> None:
        found = self._by_namespace.get(namespace, {})
        found.pop(name, None)
        if not found:
            self._by_namespace.pop(namespace, None)

    def violating(self, pods: Iterable[ApiPod]) -> list[bool]:
        """For each pod, the most important first: whether it exceeds a budget if all of them are disrupted."""
        left: dict[tuple[str, str], int] = {}
        return [self._is_one_too_many(pod, left) for pod in pods]

    def _is_one_too_many(self, pod: ApiPod, left: dict[tuple[str, str], int]) -> bool:
        known = self._by_namespace.get(pod.namespace)
        if not known or not pod.metadata.labels:
            return False
        is_too_many = False
        for name, each in known.items():
            if each.is_about(pod):
                key = pod.namespace, name
                left[key] = left.get(key, each.budget.status.disruptions_allowed) - 1
                is_too_many |= left[key] < 0
        return is_too_many
