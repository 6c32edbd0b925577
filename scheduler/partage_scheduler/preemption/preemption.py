"""Preemption for a pod that fits nowhere: whether other pods leave or are suspended for it, and where it is nominated.

If it may fit once others have left, resources are held for it, and it is retried for as long as they take. A nomination
that has become pointless is withdrawn, so that others may use the resources.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import NodeName, PodUid
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.cycle import Unschedulable
from partage_scheduler.objects import ApiPod
from partage_scheduler.preemption.suspension import Suspension
from partage_scheduler.preemption.victims import NEVER, NoVictims, VictimFinder

_SOON: Final = frozenset((ClusterEvent.TIME, ClusterEvent.FREED))


class Considered(Struct, frozen=True, kw_only=True):
    stay: Unschedulable
    victims: tuple[ApiPod, ...] = ()
    """Pods that are to be deleted."""
    node: NodeName | None = None
    """The node that it is nominated to, if any."""
    is_hopeless: bool = False
    """Whether it has a nomination that is to be withdrawn."""


class Preemption:
    """Decides whether other pods leave for a pod that fits nowhere."""

    def __init__(self, finder: VictimFinder) -> None:
        self.finder = finder
        self._cluster = finder.cluster
        self._suspensions: list[Suspension] = []

    def suspensions(self) -> list[Suspension]:
        """Pods that are to be suspended, and that no earlier call returned."""
        found, self._suspensions = self._suspensions, []
        return found

    def consider(self, stay: Unschedulable, now: float) -> Considered:
        """Decides for a pod that was just tried and is not part of a gang. Raises plugins' errors."""
        pod = stay.pod
        if pod.spec.preemption_policy == NEVER:
            return Considered(stay=stay)
        if ClusterEvent.FREED not in stay.cluster_events or not self.finder.may(pod):
            return self._hopeless(stay)
        found = self.finder.victims(pod, now)
        if isinstance(found, NoVictims):
            cluster_events = stay.cluster_events | _SOON if found.is_partial else stay.cluster_events
            return self._hopeless(Unschedulable(pod, f"{stay.message} {found}", cluster_events))
        self._cluster.keep(pod, found.decision)
        deleted = tuple(each for each in found.pods if each.uid not in found.suspended)
        self.finder.sent_away(each.uid for each in deleted)
        for uid in found.suspended:
            self._suspend(uid, pod)
        soon = Unschedulable(pod, stay.message, stay.cluster_events | _SOON)
        return Considered(stay=soon, victims=deleted, node=found.node)

    def _suspend(self, uid: PodUid, pod: ApiPod) -> None:
        """Books it, so that no further victims are chosen for this pod; its cards count until its node reports."""
        placed = self._cluster.placed_pods.get(uid)
        if placed is not None:
            before = placed.allocation
            booked = replace(before, suspended=self.finder.suspended_for(pod))
            self._cluster.rebook(uid, before, booked)
            self._suspensions.append(Suspension(placed.pod, before, booked))

    def _hopeless(self, stay: Unschedulable) -> Considered:
        pod = stay.pod
        has_hope = bool(pod.status.nominated_node_name) or self._cluster.kept.node_of(pod.uid) is not None
        self._cluster.keep_no_more(pod.uid)
        return Considered(stay=stay, is_hopeless=has_hope)
