"""A PodDisruptionBudget as the scheduler reads it."""

from __future__ import annotations

from collections.abc import Mapping

from partage_scheduler.objects.base import Int32, Meta, Object
from partage_scheduler.objects.selecting import LabelSelector


class BudgetSpec(Object, frozen=True, kw_only=True):
    """Whose budget it is."""

    selector: LabelSelector | None = None


class BudgetStatus(Object, frozen=True, kw_only=True):
    """What is left of it."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: Mapping[str, str] = {}
    """Pods whose end the API server has counted already, by name."""


class ApiBudget(Object, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    @property
    def namespace(self) -> str:
        """Where it lives."""
        return self.metadata.namespace

    @property
    def name(self) -> str:
        """Its name there."""
        return self.metadata.name
