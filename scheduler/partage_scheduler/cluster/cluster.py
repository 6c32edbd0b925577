"""The cluster cache: a method for each change, which returns the cluster events that follow from it.

The state depends on objects alone: the same objects give the same state, in any order and however often they are
reported. Only the allocation of a pod is remembered when it is changed later: what was verified for a pod counts until
the pod is gone (`verified`). The request of a pod that asks for devices and has no verified allocation counts on every
device of its node (`unknown`). Of other pods only CPU and memory count.

A pod that was decided on is assumed on its node until it is seen there, seen elsewhere, gone, or undone. Terminated
pods hold nothing; pods that are being deleted hold what they held until they are gone. A pod on an unknown node is kept
for when the node is added.

Pure: it passes changes on to the decider and the predicates, and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from partage_plugins.api import (
    GPU,
    Allocation,
    AnyKind,
    Inventory,
    NodeName,
    PodRequest,
    PodUid,
)
from partage_plugins.codecs.suspension import SuspensionReport
from partage_scheduler.claims import ClaimBook, ClaimGrant
from partage_scheduler.cluster.cluster_events import NOTHING, ClusterEvent
from partage_scheduler.cluster.fleet import Fleet, Known
from partage_scheduler.cluster.kept import Kept
from partage_scheduler.cluster.placed_pods import PlacedPod, PlacedPods, counts_otherwise, lower
from partage_scheduler.cluster.promised import Promised
from partage_scheduler.cluster.refusals import Refusals
from partage_scheduler.cluster.suspended import Suspensions
from partage_scheduler.cluster.unknown import Closed, UnreadPods, everywhere
from partage_scheduler.cluster.verified import Held, Unknown, Verified
from partage_scheduler.cluster.what_if import WhatIf
from partage_scheduler.decision import Decider, Decision, FilteredNodes
from partage_scheduler.objects import ApiNode, ApiPod, gang_of
from partage_scheduler.predicates import Predicates

Causes = frozenset[ClusterEvent]
_NODE, _FREED, _POD = (frozenset((each,)) for each in (ClusterEvent.NODE, ClusterEvent.FREED, ClusterEvent.POD))


class ClusterSettings(Struct, frozen=True, kw_only=True):
    silent_after_s: float = 40.0
    """A node without a heartbeat for this long takes no new pods with devices."""
    claims_of: str = ""
    """Name of the scheduler whose pods' claims are allocated here; empty: others allocate claims."""


class Cluster:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        decider: Decider,
        predicates: Predicates,
        *,
        trusted: Callable[[ApiPod], Allocation | None],
        asks: Callable[[ApiPod], Unknown | None],
        told: Callable[[ApiPod, str], None] = lambda _pod, _words: None,
        settings: ClusterSettings | None = None,
        kinds: Iterable[AnyKind] = (GPU,),
    ) -> None:
        """`trusted` returns the signed allocation on a pod; None if it has none that verifies.

        `asks` returns the request of a pod without one. `told` is called, once for each change, for pods whose
        annotations differ from what counts for them.
        """
        self._decider, self._predicates, self._kinds = decider, predicates, tuple(kinds)
        settings = settings or ClusterSettings()
        self.fleet = Fleet(
            decider,
            predicates,
            silent_after_s=settings.silent_after_s,
            kinds=self._kinds,
            claims=bool(settings.claims_of),
        )
        self.claims = ClaimBook(decider, self._inventory_of, ours=settings.claims_of)
        self.placed_pods, self._closed, self.verified = PlacedPods(), Closed(), Verified(trusted, asks, told)
        self._promised = Promised()
        self.suspensions = Suspensions(decider, self.placed_pods)
        self.kept = Kept(decider, predicates)
        self._pointless: list[ApiPod] = []
        self._unread, self._refusals = UnreadPods(), Refusals()

    def inventory(self, node: NodeName) -> Inventory:
        return self.fleet[node].inventory

    def holders(self, node: NodeName) -> list[tuple[ApiPod, Allocation]]:
        """Pods on a node with what each was given there."""
        return [(placed.pod, placed.allocation) for placed in self.placed_pods.on(node)]

    def barred(self, pod: ApiPod, request: PodRequest, now: float) -> list[FilteredNodes]:
        """Nodes that just rejected such a pod or are promised to others; for devices also nodes that share none now."""
        slots = self._decider.slots
        found = [*self.fleet.barred(request, now), *self._unread.barred(slots)] if request.containers else []
        found += self._closed.barred(request, slots)
        found += self._promised.barred(pod, request.needs, self._decider, kept=self.kept)
        found += self._refusals.barred(pod.namespace, now, slots)
        return found

    def refused(self, pod: ApiPod, now: float) -> None:
        """Records that a kubelet lacked resources for a pod that we bound there."""
        self._refusals.put(pod.namespace, NodeName(pod.node), now)

    def what_if(self) -> WhatIf:
        """A what-if view of the cluster, in which pods have left or devices differ."""
        return WhatIf(self._decider, self._predicates, self._closed, self.fleet, self.claims)

    def keep(self, pod: ApiPod, decision: Decision) -> None:
        """Holds this for a pod that waits for its victims; pods of a lower priority lose what is held there."""
        self._pointless += self.kept.yields(decision.node, pod.priority)
        self.kept.put(pod, decision)

    def keep_for_gang(self, pod: ApiPod, decision: Decision) -> None:
        """Holds what a pod was to get if its binding failed while other pods of its gang are on nodes."""
        gang = gang_of(pod)
        if gang is not None and self.placed_pods.of_gang(gang) and decision.node in self.fleet:
            self.keep(pod, decision)

    def keep_no_more(self, uid: PodUid) -> Causes:
        return _FREED if self.kept.remove(uid) else NOTHING

    def pointless(self) -> list[ApiPod]:
        """Pending pods that lost what was held for them since the last call."""
        found, self._pointless = self._pointless, []
        return found

    def node(self, node: ApiNode) -> Causes:
        if not self.fleet.is_news(node):
            return NOTHING
        known = self.fleet.get(node.name)
        if known is None:
            return self._node_comes(node)
        if known.node.metadata.uid == node.metadata.uid:
            cluster_events = self.fleet.changes(known, node)
            if ClusterEvent.INVENTORY in cluster_events:
                self._count_anew(self.fleet[node.name])
            return cluster_events
        return self.node_gone(node.name) | self._node_comes(node)

    def withhold(self, reservations: Iterable[str]) -> Causes:
        """Treats the cards of these reservation pods, which are leaving or gone, as kubelet's despite inventories."""
        cluster_events = NOTHING
        for known in self.fleet.withhold(frozenset(reservations)):
            self._count_anew(known)
            cluster_events |= _NODE
        return cluster_events

    def node_gone(self, name: str, *, uid: str = "") -> Causes:
        """Removes a node; pods still bound to it hold nothing until it is added again.

        With a `uid`, only if the node of that name still has this uid.
        """
        known = self.fleet.get(NodeName(name))
        if known is None or uid not in {"", known.node.metadata.uid}:
            return NOTHING
        for placed in self.placed_pods.on(known.node.name):
            self._predicates.remove_pod(placed.pod.uid)
            self._closed.remove(placed.pod.uid)
        self._pointless += self.kept.node_gone(known.node.name)
        self.fleet.goes(known)
        return _NODE | _FREED  # its pods may have kept others away from its whole zone

    def heartbeat(self, name: str, renewed_s: float | None, now: float) -> Causes:
        """Renewal time of a node's heartbeat Lease, on the same clock as `now`; None if there is no Lease."""
        return self.fleet.beats(NodeName(name), renewed_s, now)

    def reported(self, name: str, reports: Mapping[PodUid, SuspensionReport]) -> Causes:
        """What a node reports, on its heartbeat Lease, of pods that it was told to suspend."""
        return _FREED if self.suspensions.told(NodeName(name), reports) else NOTHING

    def waits_on(self, uid: PodUid, node: NodeName) -> bool:
        """Whether a pending pod is to be placed on this node."""
        return node in {self.kept.node_of(uid), self._promised.node_of(uid)}

    def relisted_nodes(self, nodes: Iterable[ApiNode]) -> Causes:
        listed = {node.name: node for node in nodes}
        cluster_events = NOTHING
        for name in [name for name in self.fleet.names if name not in listed]:
            cluster_events |= self.node_gone(name)
        for node in listed.values():
            cluster_events |= self.node(node)
        return cluster_events

    def none_unread(self) -> Causes:
        """Forgets undecodable pods, because all pods are about to be listed again."""
        return _FREED if self._unread.clear() else NOTHING

    def pod(self, pod: ApiPod) -> Causes:
        """Takes a pod of any scheduler as it is now; never an older version than before (`event_handlers`)."""
        if pod.is_terminal:
            return self.pod_gone(pod.uid)
        let_go = _FREED if self._unread.remove(pod.uid) else NOTHING
        if not pod.node:
            return let_go | self._waits(pod)
        let_go |= self._let_go(pod.uid)
        placed = self.placed_pods.get(pod.uid)
        if placed is None:
            return let_go | self._is_seen(pod)
        if placed.node != pod.node:
            self._remove(placed)
            return _FREED | self._is_seen(pod)
        return let_go | self._is_still(placed, pod)

    def pod_unread(self, pod: ApiPod) -> None:
        """Takes an undecodable pod, on its node or where it was last.

        It keeps what it held; a pod that was never seen gets the allocation that is signed for it there.
        """
        placed = self.placed_pods.get(pod.uid)
        node = NodeName(pod.node) or (placed.node if placed is not None else NodeName(""))
        if not node:
            return
        self._unread.put(pod.uid, node)
        if placed is None:
            held = self.verified.held(pod, node, None)
            if held.allocation.containers:
                self._place(PlacedPod(pod, node, held))

    def pod_gone(self, uid: PodUid) -> Causes:
        """Removes a pod that was deleted or has terminated."""
        self.verified.forget(uid)
        self.claims.consumers.gone(uid)
        let_go = self._let_go(uid) | (_FREED if self._unread.remove(uid) else NOTHING)
        placed = self.placed_pods.get(uid)
        if placed is not None:
            self._remove(placed)
        return let_go if placed is None else _FREED

    def assume(self, pod: ApiPod, decision: Decision) -> tuple[ClaimGrant, ...]:
        """Assumes a pod that is about to be bound; returns the allocations to write on its claims first."""
        if self.placed_pods.get(pod.uid) is not None:
            raise ValueError(f"pod {pod.uid} is on a node already, or assumed to be")
        self._let_go(pod.uid)
        self._pointless += self.kept.yields(decision.node, pod.priority)
        self._place(
            PlacedPod(pod, decision.node, Held(decision.allocation), needed=decision.request.needs, assumed=True)
        )
        return self.claims.assume(pod, decision)

    def rebook(self, uid: PodUid, before: Allocation, now: Allocation) -> Causes:
        """Replaces a pod's allocation when a resize or suspension starts or is undone; no-op if another one counts."""
        placed = self.placed_pods.get(uid)
        if placed is None or placed.allocation is not before:
            return NOTHING
        known = self.fleet.get(placed.node)
        if known is not None:
            self._count_no_more(placed)
        placed.rebook(now)
        self.placed_pods.update(placed, placed.pod)
        if known is not None:
            self._count(placed, known)
        self._pointless += self.kept.yields(placed.node, placed.pod.priority)
        return _FREED

    def confirmed(self, uid: PodUid) -> None:
        """Marks a pod as bound: the API server confirmed it, and the watch will follow."""
        placed = self.placed_pods.get(uid)
        if placed is not None:
            placed.assumed = False

    def undo(self, uid: PodUid) -> Causes:
        """Removes an assumed pod whose binding failed; a pod seen on its node meanwhile stays."""
        freed = _FREED if self.claims.undo(uid) else NOTHING
        placed = self.placed_pods.get(uid)
        if placed is None or not placed.assumed:
            return freed
        self._remove(placed)
        return _FREED

    def _node_comes(self, node: ApiNode) -> Causes:
        known = self.fleet.comes(node)
        for placed in self.placed_pods.on(node.name):
            self._count(placed, known)
        self.claims.holdings.node_comes(node.name)
        return _NODE

    def _inventory_of(self, node: NodeName) -> Inventory | None:
        known = self.fleet.get(node)
        return None if known is None else known.inventory

    def _count_anew(self, known: Known) -> None:
        """Counts pods of unknown allocation on all of a node's new devices."""
        self.claims.holdings.node_comes(known.node.name)
        for placed in self.placed_pods.on(known.node.name):
            if placed.held.unknown is not None:
                self._count_no_more(placed)
                self._count(placed, known)

    def _waits(self, pod: ApiPod) -> Causes:
        if self.placed_pods.get(pod.uid) is not None:  # a late event, or its binding is in flight
            return NOTHING
        if pod.is_going:
            return self._let_go(pod.uid)
        return _FREED if self._promised.put(pod) else NOTHING

    def _let_go(self, uid: PodUid) -> Causes:
        """Releases what is promised to or held for a pod that is no longer pending."""
        promised, kept = self._promised.remove(uid), self.kept.remove(uid)
        return _FREED if promised or kept else NOTHING

    def _is_seen(self, pod: ApiPod) -> Causes:
        node = NodeName(pod.node)
        self._place(PlacedPod(pod, node, self.verified.held(pod, node, None)))
        return _POD

    def _is_still(self, placed: PlacedPod, pod: ApiPod) -> Causes:
        """The pod is seen where it was, or where it was assumed to be."""
        before, was = placed.pod, placed.held
        held = self.verified.held(pod, placed.node, was, is_assumed=placed.assumed)
        now = PlacedPod(pod, placed.node, held)
        is_other = (held.allocation, held.unknown) != (was.allocation, was.unknown)
        if is_other or now.needs != placed.needs:
            self._remove(placed)
            self._place(now)
            return _POD | (_FREED if is_other or lower(now.needs, placed.needs) else NOTHING)
        placed.assumed, placed.held = False, held
        self.placed_pods.update(placed, pod)
        is_other = counts_otherwise(pod, before)
        if is_other and (known := self.fleet.get(placed.node)):
            self._predicates.put_pod(known.slot, pod)
        return _POD if was.notes is None or is_other else NOTHING

    def _place(self, placed: PlacedPod) -> None:
        self.placed_pods.add(placed)
        known = self.fleet.get(placed.node)
        if known is not None:
            self._count(placed, known)

    def _remove(self, placed: PlacedPod) -> None:
        self.placed_pods.remove(placed)
        if self.kept and (gang := gang_of(placed.pod)) is not None and not self.placed_pods.of_gang(gang):
            self.kept.remove_gang(gang)  # nothing is held for a gang without pods on nodes
        if placed.node in self.fleet:
            self._count_no_more(placed)

    def _count(self, placed: PlacedPod, known: Known) -> None:
        if placed.held.unknown is not None:
            placed.count(*everywhere(placed.held.unknown, placed.pod.uid, placed.node, known.inventory, self._kinds))
            self._closed.put(placed)
        self._decider.take(placed.allocation, placed.needs)
        self._predicates.put_pod(known.slot, placed.pod)

    def _count_no_more(self, placed: PlacedPod) -> None:
        self._decider.give_back(placed.pod.uid)
        self._predicates.remove_pod(placed.pod.uid)
        self._closed.remove(placed.pod.uid)
