"""A PodDisruptionBudget as the scheduler reads it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from msgspec.structs import force_setattr

from partage_scheduler.objects.base import ApiObject, Int32, Object
from partage_scheduler.objects.selectors import LabelSelector

_MOST: Final = 64
"""Limit of a selector's labels, of its expressions, and of an expression's values."""


class BudgetSpec(Object, frozen=True, kw_only=True):
    selector: LabelSelector | None = None

    def __post_init__(self) -> None:
        """Keeps the first terms of an excessive selector: the budget then protects more pods, and none less."""
        selector = self.selector
        if selector is None or (len(selector.match_labels) <= _MOST and not selector.match_expressions):
            return
        short = (each for each in selector.match_expressions if len(each.values) <= _MOST)
        labels = dict(islice(selector.match_labels.items(), _MOST))
        first = LabelSelector(match_labels=labels, match_expressions=tuple(islice(short, _MOST)))
        force_setattr(self, "selector", first)


class BudgetStatus(Object, frozen=True, kw_only=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: Mapping[str, str] = {}
    """Pods whose disruption the API server has already counted, by name."""


class ApiBudget(ApiObject, frozen=True, kw_only=True):
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
