"""The filter and prioritize verbs: which of kube-scheduler's nodes a pod's devices fit on, and where best. Pure.

Nodes are excluded by plugins and heartbeats alone: all other filters, CPU and memory included, are kube-scheduler's
own, whose view of its bindings is newer. Scores are those of standalone mode. The plugins' answers for a shape are
cached, and they are asked about these nodes only, so most calls are almost free.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from partage_plugins.answers import Scores
from partage_plugins.api import NodeName, PodRequest, PodUid, Resources
from partage_plugins.api.reasons import Reason
from partage_plugins.cache import Cache, structure_bytes
from partage_plugins.codecs import read_gang
from partage_plugins.errors import PartageError, PluginError
from partage_scheduler.cycle import Cycle
from partage_scheduler.decision import Decision, FilteredNodes, only
from partage_scheduler.extender.messages import Args, FilterResult, Host, PrioritizeArgs
from partage_scheduler.objects import ApiPod

BEST: Final = 10
"""Score of the best node, which is the protocol's maximum."""
UNKNOWN: Final = Reason("unknown", "node(s) were not known to partage yet", lasts=True)
GANG: Final = "gangs are bound by partage's own scheduler alone: name it in schedulerName"
GROUP: Final = (
    "the pods of a pod group (spec.schedulingGroup) are bound as one, and devices are given one by one through "
    "kube-scheduler: name partage's own scheduler in schedulerName, and say partage.dev/gang and partage.dev/gang-size"
)
OURS: Final = (
    "schedulerName is the one of partage's own scheduler, which binds this pod: give kube-scheduler's profile another"
)
GATED: Final = "the pod has scheduling gates, so it may not be bound yet"
NOTHING_OF_OURS: Final = (
    "the pod asks for nothing that partage gives: name its resources in managedResources, so that others bind it"
)
NO_MORE: Final = "the node has no room for the pod's devices any more"
_MOST_BYTES: Final = 32 << 20
_NAME_BYTES: Final = 128
_NOWHERE: Final = np.float32("-inf")
_NOTHING: Final = Resources()


class Asked(NamedTuple):
    """Input and result of a filter call, for later calls about the same pod."""

    pod: ApiPod
    request: PodRequest
    names: tuple[NodeName, ...]
    """The nodes that it fits on."""
    scores: Scores
    """The score of each."""


class Offers(NamedTuple):
    request: PodRequest
    slots: NDArray[np.intp]
    barred: Sequence[FilteredNodes]
    scores: Scores
    """Minus infinity where it does not fit."""

    @property
    def places(self) -> NDArray[np.intp]:
        """Indices of those where it fits."""
        return np.flatnonzero(self.scores > _NOWHERE)


class NodeFilter:
    def __init__(self, cycle: Cycle, *, ours: str = "", most_nodes: int = 0) -> None:
        """`ours` is our own schedulerName; if more than `most_nodes` fit, only the best are returned (0: all)."""
        self._cycle, self._ours, self._most_nodes = cycle, ours, most_nodes
        self._asked = Cache[PodUid, Asked](_MOST_BYTES)

    def asked(self, uid: PodUid) -> ApiPod | None:
        """The pod of a filter call that found nodes; a bind call has only its name."""
        found = self._asked.get(uid)
        return None if found is None else found.pod

    def forget(self, uid: PodUid) -> None:
        self._asked.pop(uid)

    def against(self, pod: ApiPod) -> str | None:
        """Why kube-scheduler must not place it."""
        return OURS if pod.spec.scheduler_name == self._ours else None

    def against_binding(self, pod: ApiPod) -> str | None:
        """Why it must not be bound through kube-scheduler, by any caller."""
        if pod.spec.scheduling_gates:
            return GATED
        asked = self._asked.get(pod.uid)
        request = self._request(pod) if asked is None else asked.request
        if isinstance(request, str):
            return request
        return self.against(pod) or (None if request.containers else NOTHING_OF_OURS)

    def filter(self, args: Args, now: float) -> FilterResult:
        names = tuple(args.node_names or ())
        request = self._request(args.pod)
        if isinstance(request, str):
            return FilterResult(failed_and_unresolvable_nodes=dict.fromkeys(names, request))
        cluster = self._cycle.cluster
        with cluster.kept.lifted(args.pod):
            offers = self._offers(args.pod, request, names, now)
            if not offers.places.size:
                with cluster.suspensions.lifted(args.pod) as is_any:
                    offers = self._offers(args.pod, request, names, now) if is_any else offers
        places = offers.places
        if not places.size:
            return self._nowhere(offers, names)
        if 0 < self._most_nodes < places.size:
            places = _best_of(names, offers.scores, places, self._most_nodes)
        if places.size < len(names):
            names = tuple([names[place] for place in places.tolist()])
        self._remember(Asked(args.pod, request, names, offers.scores[places]))
        return FilterResult(node_names=names)

    def prioritize(self, args: PrioritizeArgs) -> tuple[Host, ...]:
        """The filter call's scores. Only one node gets the maximum, so that kube-scheduler never picks at random."""
        asked = self._asked.get(args.pod.metadata.uid)
        if asked is None or not args.node_names:
            return ()
        names, scores = args.node_names, asked.scores
        if names != asked.names:
            known = dict(zip(asked.names, scores.tolist(), strict=True))
            names = tuple([name for name in names if name in known])
            scores = np.array([known[name] for name in names], dtype=np.float32)
        return _hosts(names, scores) if names else ()

    def on(self, pod: ApiPod, node: NodeName, now: float) -> Decision | str:
        """Its devices on one node, or the reason why it does not fit there now."""
        asked = self._asked.get(pod.uid)
        request = self._request(pod) if asked is None else asked.request
        if isinstance(request, str):
            return request
        decider = self._cycle.decider
        cluster = self._cycle.cluster
        with cluster.kept.lifted(pod), cluster.suspensions.lifted(pod, node):
            slot = decider.slots.of(node)
            if slot is not None and not any(each.has(slot) for each in self._barred(pod, request, now)):
                decision = decider.decide_on(request, node)
                if decision is not None:
                    return decision
            (why,) = self._reasons(self._offers(pod, request, (node,), now))
        return f"{NO_MORE}: {why}"

    def fits(self, pod: ApiPod, now: float) -> bool:
        request, cluster = self._request(pod), self._cycle.cluster
        if isinstance(request, str) or not self._cycle.decider.slots.end:
            return False
        with cluster.kept.lifted(pod):
            if self._fits(pod, request, now):
                return True
            with cluster.suspensions.lifted(pod) as is_any:
                return is_any and self._fits(pod, request, now)

    def _fits(self, pod: ApiPod, request: PodRequest, now: float) -> bool:
        decider = self._cycle.decider
        open_ = decider.unbarred(self._barred(pod, request, now))
        return bool(np.any(decider.liked(request)[open_] > _NOWHERE))

    def _remember(self, asked: Asked) -> None:
        size = structure_bytes(asked.pod.bytes) + _NAME_BYTES * len(asked.names) + asked.scores.nbytes
        self._asked.put(asked.pod.uid, asked, size)

    def _request(self, pod: ApiPod) -> PodRequest | str:
        """Its request, or the error in it."""
        try:
            if read_gang(pod.namespace, pod.metadata.annotations, pod.metadata.labels) is not None:
                return GANG
            if pod.spec.scheduling_group is not None:
                return GROUP
            return self._cycle.request(pod)
        except PluginError:
            raise
        except PartageError as error:
            return str(error)

    def _barred(self, pod: ApiPod, request: PodRequest, now: float) -> list[FilteredNodes]:
        return self._cycle.cluster.barred(pod, replace(request, needs=_NOTHING), now)

    def _offers(self, pod: ApiPod, request: PodRequest, names: Sequence[NodeName], now: float) -> Offers:
        decider = self._cycle.decider
        slots = decider.slots.of_all(names)
        barred = self._barred(pod, request, now)
        if not decider.slots.end:
            return Offers(request, slots, barred, np.full(slots.shape, _NOWHERE))
        scores = only(decider.unbarred(barred), self._liked(pod, request, slots[slots >= 0]))
        return Offers(request, slots, barred, np.where(slots < 0, _NOWHERE, scores[slots]))

    def _liked(self, pod: ApiPod, request: PodRequest, among: NDArray[np.intp]) -> Scores:
        """The plugins' scores of these slots plus the pod's own preferences, as in standalone mode."""
        scores = self._cycle.decider.liked(request, among)
        preferences = self._cycle.predicates.preferences(pod, scores.size)
        return scores if preferences is None else scores + preferences[: scores.size]

    def _nowhere(self, offers: Offers, names: Sequence[NodeName]) -> FilterResult:
        found = list(zip(names, self._reasons(offers), strict=True))
        return FilterResult(
            failed_nodes={name: str(why) for name, why in found if not why.lasts},
            failed_and_unresolvable_nodes={name: str(why) for name, why in found if why.lasts},
        )

    def _reasons(self, offers: Offers) -> list[Reason]:
        """For each node, the first reason why the pod does not fit."""
        slots = offers.slots.tolist()
        reasons: dict[int, Reason] = {place: UNKNOWN for place, slot in enumerate(slots) if slot < 0}
        for each in offers.barred:
            flags = each.flags(self._cycle.decider.slots.end)
            for place, slot in enumerate(slots):
                if place not in reasons and flags[slot]:
                    reasons[place] = each.reason
        rest = [place for place in range(len(slots)) if place not in reasons]
        reasons.update(zip(rest, self._cycle.decider.disliked(offers.request, offers.slots[rest]), strict=True))
        return [reasons[place] for place in range(len(slots))]


def _best_of(names: Sequence[NodeName], scores: Scores, places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """The best places, in their original order; ties are broken by name."""
    found = scores[places]
    last = found.max() if most == 1 else np.partition(found, -most)[-most]
    better = places[found > last]
    equal = nsmallest(most - better.size, places[found == last].tolist(), key=names.__getitem__)
    return np.sort(np.append(better, equal))


def _hosts(names: Sequence[NodeName], scores: Scores) -> tuple[Host, ...]:
    best = min(np.flatnonzero(scores == scores.max()).tolist(), key=names.__getitem__)
    levels = enumerate(_levels(scores).tolist())
    rest = (Host(host=names[place], score=level) for place, level in levels if level and place != best)
    return (Host(host=names[best], score=BEST), *rest)


def _levels(scores: Scores) -> NDArray[np.intp]:
    """From 0 for the worst to one below `BEST`."""
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return np.zeros(scores.shape, dtype=np.intp)
    return ((scores - low) * ((BEST - 1) / (high - low))).astype(np.intp)
