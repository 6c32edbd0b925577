"""How the broker names what several containers may have together."""

from __future__ import annotations

import hashlib
from typing import Final, NewType

from partage_plugins.vocabulary.names import BudgetName, ContainerKey, PodUid

BudgetKey = NewType("BudgetKey", str)
"""32 hex digits, as a container's key; of a container that is in no budget of its pod, that container's own."""
_DIGITS: Final = 32


def budget_key(pod: PodUid, budget: BudgetName) -> BudgetKey:
    """No container's: these are made of three words."""
    return BudgetKey(hashlib.sha256(f"{pod}/{budget}".encode()).hexdigest()[:_DIGITS])


def own_budget(container: ContainerKey) -> BudgetKey:
    """Of a container that shares none."""
    return BudgetKey(container)
