"""One scheduling cycle: picks a node and devices for a pod or gang, or explains why it is unschedulable.

An explanation includes the cluster events that could make the pod schedulable. Results are assumed in the cache
immediately, so that the next cycle sees them. If one pod of a gang fits nowhere, the gang is rolled back. Pure: it
writes nothing and never blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace

from partage_plugins.api import Gang, NodeName, Pod, PodRequest
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.reasons import Reason
from partage_plugins.api.usage import usages
from partage_plugins.errors import PartageError, PluginBroken, PluginError, Refused
from partage_scheduler.claims import ClaimGrant, NotYet
from partage_scheduler.cluster import NOTHING, REFUSED, Cluster, ClusterEvent
from partage_scheduler.decision import Decider, Decision, Explanation, FilteredNodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.predicates import Predicates
from partage_scheduler.queue import Waiting
from partage_scheduler.quotas import QUOTA, Quotas
from partage_scheduler.requests import RequestReader

_LATER = frozenset((ClusterEvent.TIME,))
_CLAIMS = frozenset((ClusterEvent.CLAIM,))
_VOLUMES = frozenset((ClusterEvent.VOLUME,))
SPANS_NODES: Final = "GangSpansNodes"
_MEASURED: Final = (
    "on simulated cards, two containers with 30 % each beside floods had 2 % of the collectives that their shares are "
    "worth, and 97 % as a gang on one node"
)
_ELSEWHERE = Reason("nominated", "another node is nominated")


@dataclass(frozen=True)
class Bind:
    """A pod that is assumed on a node and is to be bound there."""

    pod: ApiPod
    decision: Decision
    claims: tuple[ClaimGrant, ...] = ()
    """Allocations to write on its claims before binding."""


@dataclass(frozen=True)
class Unschedulable:
    pod: ApiPod
    message: str
    """For its owner."""
    cluster_events: frozenset[ClusterEvent]
    """Cluster events that may make it fit; if empty, only a change of the pod itself can."""
    codes: frozenset[str] = frozenset()
    """Codes of the reasons that nodes gave, for programs."""


ScheduleResult = Bind | Unschedulable


class Cycle:
    def __init__(
        self,
        decider: Decider,
        read: Callable[[Pod], PodRequest],
        cluster: Cluster,
        predicates: Predicates,
        quotas: Quotas | None = None,
    ) -> None:
        self._quotas = quotas or Quotas(cluster)
        self.decider, self.cluster, self.predicates = decider, cluster, predicates
        self._requests = RequestReader(read)

    def decide(self, waiting: Waiting, now: float) -> Sequence[ScheduleResult]:
        """One result per pod that the queue handed out; pods that are to be bound are assumed on their nodes.

        A plugin's error fails its pod only, unless it is `PluginBroken`.
        """
        if waiting.gang is not None and waiting.lacking:
            message = lacks(waiting.gang.name, waiting.lacking, waiting.gang.size)
            return [Unschedulable(pod, message, NEVER) for pod in waiting.pods]
        found: list[Bind] = []
        for pod in waiting.pods:
            try:
                decision = self.weigh(pod, now)
            except PluginBroken:
                raise
            except Refused as refusal:  # by owning plugins, for node after node that all plugins accepted
                decision = Unschedulable(pod, str(refusal), frozenset(ClusterEvent))
            except PartageError as error:
                decision = Unschedulable(pod, str(error), _LATER)
            if isinstance(decision, Unschedulable):
                return self._taken_back(waiting, found, decision)
            found.append(Bind(pod, decision, self.cluster.assume(pod, decision)))
        return found

    def weigh(self, pod: ApiPod, now: float) -> Decision | Unschedulable:
        """Picks a node for one pod, without assuming the pod there."""
        try:
            request = self.request(pod)
        except PluginError:
            raise
        except NotYet as error:
            return Unschedulable(pod, in_all(len(self.cluster.fleet), [str(error)]), _CLAIMS)
        except PartageError as error:  # malformed: only its owner can fix it
            return Unschedulable(pod, str(error), _CLAIMS if pod.spec.resource_claims else NEVER)
        if (why := self.predicates.unsupported(pod)) is not None:
            return Unschedulable(pod, in_all(len(self.cluster.fleet), [why.removesuffix(".")]), _VOLUMES)
        with self.cluster.kept.lifted(pod):
            barred = self.barred(pod, request, now)
            decision = self._best(pod, request, barred) or self._in_room_of_suspended(pod, request, now)
            if decision is not None:
                return decision
            explanation = self.decider.explain(request, barred)
        cluster_events = cluster_events_for(pod, explanation, has_devices=bool(request.containers))
        codes = frozenset(why.code for why, count in explanation.reasons.items() if count)
        return Unschedulable(pod, nowhere(explanation), cluster_events, codes)

    def request(self, pod: ApiPod) -> PodRequest:
        """The pod's request, claims included; raises errors of dialects on malformed requests and of reading claims."""
        request = self._requests.of(pod)
        claims = self.cluster.claims.asks(pod)
        return replace(request, containers=(*request.containers, *claims)) if claims else request

    def barred(self, pod: ApiPod, request: PodRequest, now: float) -> list[FilteredNodes]:
        """Nodes filtered out by all rules but plugins, CPU and memory, in the order in which reasons are reported."""
        plain = self.predicates.barred(pod, self.decider.slots.end) + self.cluster.barred(pod, request, now)
        if request.containers and (reason := self._quotas.against(pod)) is not None:
            plain.append(FilteredNodes(reason, np.ones(self.decider.slots.end, dtype=np.bool_)))
        return [*self.cluster.claims.barred(pod), *plain]

    def _taken_back(self, waiting: Waiting, found: list[Bind], stay: Unschedulable) -> list[Unschedulable]:
        for bind in found:
            self.cluster.undo(bind.pod.uid)
        if waiting.gang is None:
            return [stay]
        message = with_gang(waiting.gang.name, stay.pod.name, stay.message)
        return [stay if pod is stay.pod else Unschedulable(pod, message, stay.cluster_events) for pod in waiting.pods]

    def _best(self, pod: ApiPod, request: PodRequest, barred: list[FilteredNodes]) -> Decision | None:
        preferences = self.predicates.preferences(pod, self.decider.slots.end)
        nominated = pod.status.nominated_node_name
        if nominated and NodeName(nominated) in self.decider.slots:
            others = FilteredNodes(_ELSEWHERE, ~self.decider.slots.flags((NodeName(nominated),)))
            there = self.decider.decide(request, [*barred, others], preferences)
            if there is not None:
                return there
        return self.decider.decide(request, barred, preferences)

    def _in_room_of_suspended(self, pod: ApiPod, request: PodRequest, now: float) -> Decision | None:
        """The best node if suspended pods of a lower priority hold no cards: on the nominated one, then on all."""
        nominated = NodeName(pod.status.nominated_node_name)
        for node in (nominated, None) if nominated else (None,):
            with self.cluster.suspensions.lifted(pod, node) as is_any:
                found = self._best(pod, request, self.barred(pod, request, now)) if is_any else None
            if found is not None:
                return found
        return None


NO_NODES: Final = "no nodes available to schedule pods"


def nowhere(explanation: Explanation) -> str:
    """One sentence for an event and a condition."""
    if not explanation.nodes:
        return NO_NODES
    return in_all(explanation.nodes, (f"{count} {why}" for why, count in explanation.reasons.items() if count))


def in_all(nodes: int, reasons: Iterable[str]) -> str:
    return f"0/{nodes} nodes are available: {', '.join(sorted(reasons))}."


def cluster_events_for(pod: ApiPod, explanation: Explanation, *, has_devices: bool) -> frozenset[ClusterEvent]:
    """Cluster events that may make the pod fit; errs on the side of too many."""
    cluster_events = {ClusterEvent.NODE, ClusterEvent.NAMESPACE}
    if has_devices:
        cluster_events.add(ClusterEvent.INVENTORY)
    if not all(why.lasts and why.code != QUOTA.code for why, count in explanation.reasons.items() if count):
        cluster_events.add(ClusterEvent.FREED)
    if pod.spec.volumes:
        cluster_events.add(ClusterEvent.VOLUME)
    if explanation.reasons.get(REFUSED):
        cluster_events.add(ClusterEvent.TIME)
    if pod.spec.resource_claims:
        cluster_events.add(ClusterEvent.CLAIM)
    if needs_others(pod):
        cluster_events.add(ClusterEvent.POD)
    return frozenset(cluster_events)


def needs_others(pod: ApiPod) -> bool:
    """Whether the arrival of another pod may make it fit."""
    affinity = pod.spec.affinity
    near = affinity is not None and affinity.pod_affinity is not None and affinity.pod_affinity.required
    return bool(near or pod.spec.topology_spread_constraints)


def lacks(gang: str, lacking: int, size: int) -> str:
    """The message for a gang that waits for its pods."""
    return f"gang {gang} is bound all or none: {lacking} of its {size} pods are not there yet."


def with_gang(gang: str, pod: str, message: str) -> str:
    return f"gang {gang} is bound all or none, and pod {pod} fits nowhere: {message}"


def spans_nodes(gang: Gang, binds: Sequence[Bind], on: Mapping[NodeName, int]) -> str | None:
    """A warning if these bindings spread the gang over several nodes, or over one more.

    `on`: the number of its pods on each node, these included. Time slices are coscheduled within one node only. A gang
    with whole cards needs no time slices, and gets no warning.
    """
    here = Counter(bind.decision.node for bind in binds)
    has_parts = any(usage.share_milli < WHOLE_MILLI for bind in binds for usage in usages(bind.decision.allocation))
    if len(on) < 2 or not has_parts or all(on[node] > number for node, number in here.items()):  # noqa: PLR2004
        return None
    return (
        f"gang {gang.name} is on {len(on)} nodes, and its pods have parts of cards. Their leases are together on one "
        f"node only: a collective that spins for its peers wastes turns ({_MEASURED}). Ask for whole cards, or keep "
        "the gang on one node by pod affinity"
    )


NEVER: Final = NOTHING
"""For a pod that fits only if its owner changes it."""
