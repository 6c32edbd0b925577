"""Turns a request into a node with grants, or nothing, and keeps the state that decisions are based on.

It writes nothing and makes no allocation valid: the caller reports what it assumes by `take`, signs it and binds. Its
only predicates are plugins, CPU and memory; other rules are passed in as `FilteredNodes`. Single-threaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags, Scores
from partage_plugins.api import (
    Allocation,
    ContainerName,
    Inventory,
    Kind,
    NodeName,
    PodRequest,
    PodUid,
    Resources,
    Slot,
)
from partage_plugins.api.names import claim_of
from partage_plugins.api.reasons import SAID, Reason
from partage_plugins.codecs.critical import MOVABLE, moves
from partage_plugins.errors import Refused
from partage_scheduler.decision.framework import Framework
from partage_scheduler.decision.free_resources import FreeResources
from partage_scheduler.decision.ledger import Holding, Ledger
from partage_scheduler.decision.reasons import Explanation, FilteredNodes, said_of
from partage_scheduler.decision.score_cache import NO_FIT, SHAPES, ScoreCache, ShapeScores, best_of, only
from partage_scheduler.decision.slots import SlotTable

_ATTEMPTS: Final = 8
"""Nodes tried when owning plugins refuse what all plugins accepted; then the pod waits, so that others get a try."""


@dataclass(frozen=True)
class Decision:
    request: PodRequest
    node: NodeName
    grants: Mapping[ContainerName, Mapping[Kind, Any]]

    @cached_property
    def allocation(self) -> Allocation:
        """The allocation as written on the pod, without the grants of its claims, which are written on the claims."""
        asked, grants = self.request, self.grants
        if any(claim_of(name) is not None for name in grants):
            grants = {name: each for name, each in grants.items() if claim_of(name) is None}
        return Allocation(
            gen=1,
            crit=(MOVABLE,) if moves(asked) else (),
            pod=asked.pod.uid,
            node=self.node,
            containers=grants,
            uses=asked.uses,
            gang=asked.gang,
        )

    @cached_property
    def taken(self) -> Allocation:
        """All devices taken on the node, those of the pod's claims included."""
        return Allocation(gen=1, pod=self.request.pod.uid, node=self.node, containers=self.grants)


class Decider:
    def __init__(self, framework: Framework, ledger: Ledger, *, shapes: int = SHAPES) -> None:
        """`ledger` is the record that `framework` replays to recreated plugins: empty at first, changed only here."""
        self._framework, self.ledger = framework, ledger
        self.slots = SlotTable()
        self._rooms = FreeResources()
        self.score_cache = ScoreCache(shapes)

    def free(self, node: NodeName) -> Resources:
        """CPU and memory that no pod holds."""
        return self.ledger.room(self.slots.known(node))[1]

    def add_node(self, node: NodeName, inventory: Inventory, total: Resources) -> None:
        self._open(self.slots.give(node), node, inventory, total)

    def remove_node(self, node: NodeName) -> None:
        """Removes a node and all that is held there."""
        slot = self.slots.known(node)
        self._close(slot)
        self.slots.free(node)

    def replace_inventory(self, node: NodeName, inventory: Inventory) -> None:
        """Replaces a node's devices; what pods hold there stays held."""
        slot = self.slots.known(node)
        total, _ = self.ledger.room(slot)
        holdings = self._close(slot)
        self._open(slot, node, inventory, total)
        for holding in holdings:
            self.take(holding.allocation, holding.needs)

    def resize_node(self, node: NodeName, total: Resources) -> None:
        slot = self.slots.known(node)
        self.ledger.resize(slot, total)
        self._tell_room(slot)

    def take(self, allocation: Allocation, needs: Resources) -> None:
        """Counts what a pod holds; `needs` is CPU and memory. Without devices the allocation has no containers."""
        slot = self.slots.known(allocation.node)
        self.ledger.enter(Holding(slot, allocation, needs))
        self._framework.take(slot, allocation)
        self._tell_room(slot)

    def give_back(self, pod: PodUid) -> bool:
        """Releases what a pod holds; returns whether it held anything."""
        holding = self.ledger.strike(pod)
        if holding is None:
            return False
        self._framework.give_back(holding.slot, holding.allocation)
        self._tell_room(holding.slot)
        return True

    def decide(
        self, request: PodRequest, barred: Sequence[FilteredNodes] = (), preferences: Scores | None = None
    ) -> Decision | None:
        """The best node and the grants there; None if the pod fits nowhere, for which `explain` gives the reasons.

        `preferences`, by slot, are added to plugins' scores. Among equal nodes the first by name wins. Nothing is
        taken. Raises plugins' errors, which fail this pod only, and `Refused` if owning plugins refuse node after node
        that all plugins accepted.
        """
        shape_scores = self._standing(request)
        scores = shape_scores.scores[: self.slots.end]
        liked = scores if preferences is None else scores + preferences[: scores.size]
        refusals = 0
        while (best := self._best(request, barred, liked)).size:
            slot = self.slots.first_by_name(best)
            try:
                return Decision(request, self.slots.name(slot), self._framework.allocate(request, slot))
            except Refused as refusal:
                shape_scores.refuse(slot, SAID.of(str(refusal)))
                liked[slot] = NO_FIT
                refusals += 1
                if refusals == _ATTEMPTS:
                    raise
        return None

    def decide_on(self, request: PodRequest, node: NodeName) -> Decision | None:
        """Grants on a node chosen by the caller, who checked its CPU and memory; None if plugins reject the node.

        Raises plugins' errors, and `Refused` if an owning plugin refuses what all plugins accepted.
        """
        slot = self.slots.known(node)
        shape_scores = self._standing(request, np.array([slot], dtype=np.intp))
        if shape_scores.scores[slot] == NO_FIT:
            return None
        try:
            return Decision(request, node, self._framework.allocate(request, slot))
        except Refused as refusal:
            shape_scores.refuse(slot, SAID.of(str(refusal)))
            raise

    def liked(self, request: PodRequest, among: NDArray[np.intp] | None = None) -> Scores:
        """Scores of plugins alone by slot, minus infinity where they reject it. A view, valid until the next call.

        With `among` only these slots are up to date, and plugins are called for no others.
        """
        return self._standing(request, among).scores[: self.slots.end]

    def unbarred(self, barred: Iterable[FilteredNodes]) -> Flags:
        """Slots that no rule filters out."""
        found = np.ones(self.slots.end, dtype=np.bool_)
        for each in barred:
            found &= ~each.flags(self.slots.end)
        return found

    def disliked(self, request: PodRequest, slots: NDArray[np.intp]) -> list[Reason]:
        """Why plugins reject each of these slots; they must reject all of them."""
        shape_scores = self._said(request)
        return [shape_scores.refused.get(slot, shape_scores.said[shape_scores.codes[slot]]) for slot in slots.tolist()]

    def weigh(self, request: PodRequest) -> Scores:
        """Scores by slot, minus infinity where the pod does not fit; a copy, for callers that choose the node."""
        return only(self._possible(request, ()), self.liked(request))

    def explain(self, request: PodRequest, barred: Sequence[FilteredNodes] = ()) -> Explanation:
        """Counts reasons over nodes. Plugins are only called for nodes that changed since; at first, for all."""
        slots = self.slots.all()
        nodes, reasons = slots.size, Counter[Reason]()
        for each in barred:
            out = each.flags(self.slots.end)[slots]
            reasons[each.reason] += int(np.count_nonzero(out))
            slots = slots[~out]
        reasons.update(self._rooms.lacking(request.needs, slots))
        slots = slots[self._rooms.fit(request.needs, slots)]
        if slots.size:
            reasons += said_of(self._said(request), slots)
        return Explanation(nodes, nodes - reasons.total(), reasons)

    def said_of(self, request: PodRequest, node: NodeName) -> Reason | None:
        """Why plugins reject a node, regardless of its CPU and memory; None if they accept it."""
        slot = np.array([self.slots.known(node)], dtype=np.intp)
        return next(iter(said_of(self._said(request), slot)), None)

    def _best(self, request: PodRequest, barred: Sequence[FilteredNodes], liked: Scores) -> NDArray[np.intp]:
        """The best possible nodes. The best of all nodes are checked first, since usually some of them are possible."""
        best = best_of(liked)
        if not best.size:
            return best
        possible = self._rooms.fit(request.needs, best)
        for each in barred:
            possible &= ~each.at(best)
        if possible.any():
            return best[possible]
        return best_of(only(self._possible(request, barred), liked))

    def _said(self, request: PodRequest) -> ShapeScores:
        """The shape's cache entry with the reasons why it does not fit, up to date for all nodes."""
        shape_scores = self._standing(request)
        stale = self.slots.taken(self.score_cache.unexplained(shape_scores))
        if stale.size:
            verdict = self._framework.fits(request, stale.astype(np.int32))
            codes, table = verdict.reasons()
            shape_scores.explain(stale, np.where(verdict.fits, 0, codes + np.uint16(1)), table)
        self.score_cache.explained(shape_scores)
        return shape_scores

    def _standing(self, request: PodRequest, among: NDArray[np.intp] | None = None) -> ShapeScores:
        return self.score_cache.of(self._framework.shape(request), partial(self._score, request), among)

    def _score(self, request: PodRequest, stale: NDArray[np.int32], scores: Scores) -> None:
        asked = self.slots.taken(stale)
        if not asked.size:
            return
        fitting = asked[self._framework.fits(request, asked).fits]
        if fitting.size:
            scores[fitting] = self._framework.scores(request, fitting)

    def _possible(self, request: PodRequest, barred: Sequence[FilteredNodes]) -> Flags:
        """Nodes with enough CPU and memory that no rule filters out."""
        return self._rooms.fit(request.needs, slice(self.slots.end)) & self.unbarred(barred)

    def _open(self, slot: Slot, node: NodeName, inventory: Inventory, total: Resources) -> None:
        self.ledger.open(slot, node, inventory, total)
        self._framework.node_added(slot, node, inventory)
        self._tell_room(slot)

    def _close(self, slot: Slot) -> Sequence[Holding]:
        holdings = self.ledger.close(slot)
        self._framework.node_removed(slot)
        self.score_cache.changed(slot)
        return holdings

    def _tell_room(self, slot: Slot) -> None:
        total, free = self.ledger.room(slot)
        self._rooms.set(slot, free)
        self._framework.node_room(slot, total, free)
        self.score_cache.changed(slot)
