"""Pods that each allocated claim is reserved for, and which of them are gone although the claim lists them. Pure.

kube-controller-manager removes a pod from its claims once it is gone, and deallocates a claim that no pod uses.
"""

from __future__ import annotations

from partage_plugins.api import PodUid


class Consumers:
    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}
        self._claims: dict[str, dict[str, None]] = {}
        """Claims by their pods."""
        self._gone: set[str] = set()

    def put(self, claim: str, pods: frozenset[str]) -> None:
        """Replaces the pods of a claim, all by their uids."""
        before = self._of.pop(claim, frozenset())
        if pods:
            self._of[claim] = pods
        for pod in pods - before:
            self._claims.setdefault(pod, {})[claim] = None
        for pod in before - pods:
            del self._claims[pod][claim]
            if not self._claims[pod]:
                del self._claims[pod]
                self._gone.discard(pod)

    def gone(self, pod: PodUid) -> None:
        if pod in self._claims:
            self._gone.add(pod)

    def of_alone(self, pod: PodUid) -> list[str]:
        """Claims that only this pod uses."""
        return [claim for claim in self._claims.get(pod, ()) if self._of[claim] - self._gone <= {pod}]

    def is_over(self, claim: str) -> bool:
        """Whether the claim had pods, and all of them are gone."""
        pods = self._of.get(claim)
        return bool(pods) and bool(self._gone) and self._gone.issuperset(pods or ())
