"""Who must leave a node for a pod's devices, beside those whom kube-scheduler chose for all else. Pure.

kube-scheduler asks only of nodes on which it found somebody to leave itself, by the rules that it knows. Whom it chose
stay chosen; if the devices need it, more are added, as few and as little as in standalone mode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from partage_plugins.vocabulary import NodeName, PodUid
from partage_scheduler.extending.messages import MetaPod, PreemptionArgs, Victims
from partage_scheduler.objects import ApiPod


class Found(Protocol):
    """Who would have to leave one node."""

    @property
    def pods(self) -> Sequence[ApiPod]:
        """All of them."""
        ...

    @property
    def violations(self) -> int:
        """How many disruption budgets that breaks."""
        ...


class Finder(Protocol):
    """Who chooses victims in standalone mode."""

    def victims_on(self, pod: ApiPod, node: NodeName, now: float, *, chosen: Collection[PodUid]) -> Found | None:
        """On one node that is known; None where it would not do."""
        ...


class Nobody:
    """A finder that never finds anybody."""

    def victims_on(self, pod: ApiPod, node: NodeName, now: float, *, chosen: Collection[PodUid]) -> Found | None:
        """None."""
        del pod, node, now, chosen
        return None


class Yielding:
    """Chooses victims."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    def victims(self, args: PreemptionArgs, now: float) -> Mapping[NodeName, Victims]:
        """By node; nodes where nothing helps are left out."""
        asked = args.node_name_to_meta_victims or {}
        found = ((node, self._on(args.pod, node, victims, now)) for node, victims in asked.items())
        return {node: victims for node, victims in found if victims is not None}

    def _on(self, pod: ApiPod, node: NodeName, victims: Victims, now: float) -> Victims | None:
        found = self._finder.victims_on(pod, node, now, chosen=frozenset(each.uid for each in victims.pods))
        if found is None:
            return None
        pods = tuple(MetaPod(uid=each.uid) for each in found.pods)
        return Victims(pods=pods, violations=max(found.violations, victims.violations))
