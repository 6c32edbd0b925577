"""PodDisruptionBudgets: which of some pods can't be sent away without one more ending than its owner allows.

As upstream counts them for preemption: pods in the order of their importance use up what is allowed, a pod whose end
the API server has counted already uses nothing, and a budget that selects everything selects, here, nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from partage_scheduler.objects import ApiPod
from partage_scheduler.objects.budgets import ApiBudget
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
        """Of each of these, the most important first: whether its end is one too many if all of them end."""
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
