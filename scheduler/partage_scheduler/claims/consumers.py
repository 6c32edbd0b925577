"""Which pods each allocated claim is reserved for, and which of these are gone while the claim still says so. Pure.

kube-controller-manager takes a pod off its claims once it is gone, and lets go of a claim that nobody has.
"""

from __future__ import annotations

from partage_plugins.vocabulary import PodUid


class Consumers:
    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}
        self._claims: dict[str, dict[str, None]] = {}
        """Claims by their pods."""
        self._gone: set[str] = set()

    def put(self, claim: str, pods: frozenset[str]) -> None:
        """By uids, all of them."""
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
        """Claims that nobody has but this pod."""
        return [claim for claim in self._claims.get(pod, ()) if self._of[claim] - self._gone <= {pod}]

    def is_over(self, claim: str) -> bool:
        """Whether there were pods, and all are gone."""
        pods = self._of.get(claim)
        return bool(pods) and bool(self._gone) and self._gone.issuperset(pods or ())
