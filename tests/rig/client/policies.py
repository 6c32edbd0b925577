"""Admission policies as the API server sees them."""

from __future__ import annotations

from collections.abc import Callable

from rig.client.cluster import Cluster
from rig.client.resources import ADMISSION_POLICIES, Json
from rig.client.wait import until
from rig.errors import Refused


def mistakes_in(cluster: Cluster, policy: str) -> Json:
    """What is wrong with its expressions, once the controller-manager has checked them."""
    path = ADMISSION_POLICIES.at(name=policy)

    def status() -> Json:
        found: Json = cluster.api.get(path).get("status", {})
        return found

    def why_not() -> str | None:
        return None if "observedGeneration" in status() else "it was not checked yet"

    until("the controller-manager has checked the policy", why_not)
    mistakes: Json = status().get("typeChecking", {})
    return mistakes


def why_not_denied(*attempts: tuple[str, Callable[[], object]]) -> str | None:
    """What passes of these, or is refused in other words than those: the API server takes a moment for a policy."""
    for words, attempt in attempts:
        try:
            attempt()
        except Refused as refused:
            if words not in refused.message:
                return str(refused)
        else:
            return f"nothing is denied of {words!r}"
    return None
