"""Keys of budgets, which several containers may share."""

from __future__ import annotations

import hashlib
from typing import Final, NewType

from partage_plugins.api.names import BudgetName, ContainerKey, PodUid

BudgetKey = NewType("BudgetKey", str)
"""32 hex digits, like a container's key; for a container without a shared budget, that container's own key."""
_DIGITS: Final = 32


def budget_key(pod: PodUid, budget: BudgetName) -> BudgetKey:
    """Derive the key of a pod's budget. It differs from all containers' keys, which are derived from three words."""
    return BudgetKey(hashlib.sha256(f"{pod}/{budget}".encode()).hexdigest()[:_DIGITS])


def own_budget(container: ContainerKey) -> BudgetKey:
    """Key of the budget of a container that shares none."""
    return BudgetKey(container)
