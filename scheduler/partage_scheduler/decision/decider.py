"""One decision: a request becomes a node with grants, or nothing; and the state that decisions are made on.

It decides and keeps count. It writes nothing anywhere, makes no allocation valid by itself (the caller signs and binds,
then tells of it by `take`), and knows no predicate but room and plugins: other rules come as `Barred`. One thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags, Scores
from partage_plugins.codecs.critical import MOVABLE, moves
from partage_plugins.errors import Refused
from partage_plugins.vocabulary import (
    Allocation,
    ContainerName,
    Inventory,
    Kind,
    NodeName,
    PodRequest,
    PodUid,
    Room,
    Slot,
)
from partage_plugins.vocabulary.names import claim_of
from partage_plugins.vocabulary.reasons import SAID, Reason
from partage_scheduler.decision.ledger import Holding, Ledger
from partage_scheduler.decision.reasons import Barred, Explanation, said_of
from partage_scheduler.decision.rooms import Rooms
from partage_scheduler.decision.side import Side
from partage_scheduler.decision.slots import SlotTable
from partage_scheduler.decision.standings import NO_FIT, SHAPES, Standing, Standings, best_of, only

_ATTEMPTS: Final = 8
"""Owners that refuse what all said fits: after so many nodes the pod waits, rather than the scheduler."""


@dataclass(frozen=True)
class Decision:
    request: PodRequest
    node: NodeName
    grants: Mapping[ContainerName, Mapping[Kind, Any]]

    @cached_property
    def allocation(self) -> Allocation:
        """As it is written on the pod: without what its claims are given, which is written on those."""
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
        """All that it takes of the node's devices, its claims' included."""
        return Allocation(gen=1, pod=self.request.pod.uid, node=self.node, containers=self.grants)


class Decider:
    def __init__(self, side: Side, ledger: Ledger, *, shapes: int = SHAPES) -> None:
        """`ledger` is the record from which `side` tells plugins again; empty, and from now on changed here alone."""
        self._side, self.ledger = side, ledger
        self.slots = SlotTable()
        self._rooms = Rooms()
        self._standings = Standings(shapes)

    def free(self, node: NodeName) -> Room:
        """CPU and memory that no pod holds."""
        return self.ledger.room(self._known(node))[1]

    def add_node(self, node: NodeName, inventory: Inventory, total: Room) -> None:
        self._open(self.slots.give(node), node, inventory, total)

    def remove_node(self, node: NodeName) -> None:
        """The node is gone, and all that was held there."""
        slot = self._known(node)
        self._close(slot)
        self.slots.free(node)

    def replace_inventory(self, node: NodeName, inventory: Inventory) -> None:
        """Its devices changed; what is held there stays held."""
        slot = self._known(node)
        total, _ = self.ledger.room(slot)
        holdings = self._close(slot)
        self._open(slot, node, inventory, total)
        for holding in holdings:
            self._enter(holding)

    def resize_node(self, node: NodeName, total: Room) -> None:
        slot = self._known(node)
        self.ledger.resize(slot, total)
        self._tell_room(slot)

    def take(self, allocation: Allocation, needs: Room) -> None:
        """A pod holds this from now on; `needs` is CPU and memory. Pods without devices have no containers in it."""
        self._enter(Holding(self._known(allocation.node), allocation, needs))

    def give_back(self, pod: PodUid) -> bool:
        """Whether the pod held anything."""
        holding = self.ledger.strike(pod)
        if holding is None:
            return False
        self._side.give_back(holding.slot, holding.allocation)
        self._tell_room(holding.slot)
        return True

    def decide(
        self, request: PodRequest, barred: Sequence[Barred] = (), preferences: Scores | None = None
    ) -> Decision | None:
        """The best node and the grants there; None where it fits nowhere, which `explain` explains.

        `preferences` are added to what plugins say, by slot. Among equally good nodes the first by name. Nothing is
        taken. Raises what plugins raise (it costs this pod), and `Refused` where owners refuse node after node that all
        said fit.
        """
        standing = self._standing(request)
        refusals = 0
        while (best := self._best(request, barred, self._liked(standing, preferences))).size:
            slot = self.slots.first_by_name(best)
            try:
                return Decision(request, self.slots.name(slot), self._side.allocate(request, slot))
            except Refused as refusal:
                standing.refuse(slot, SAID.of(str(refusal)))
                refusals += 1
                if refusals == _ATTEMPTS:
                    raise
        return None

    def decide_on(self, request: PodRequest, node: NodeName) -> Decision | None:
        """The grants on a node that others chose, whose CPU and memory are theirs to core; None where plugins say no.

        Raises what plugins raise, and `Refused` where an owner refuses what all said fits.
        """
        slot = self._known(node)
        standing = self._standing(request, np.array([slot], dtype=np.intp))
        if standing.scores[slot] == NO_FIT:
            return None
        try:
            return Decision(request, node, self._side.allocate(request, slot))
        except Refused as refusal:
            standing.refuse(slot, SAID.of(str(refusal)))
            raise

    def liked(self, request: PodRequest, among: NDArray[np.intp] | None = None) -> Scores:
        """What plugins alone say: a score for each slot, minus infinity where they say no. A view, until the next.

        With `among` it is right for these slots alone, and plugins are asked about no others.
        """
        return self._standing(request, among).scores[: self.slots.end]

    def unbarred(self, barred: Iterable[Barred]) -> Flags:
        """Slots that no rule bars."""
        found = np.ones(self.slots.end, dtype=np.bool_)
        for each in barred:
            found &= ~each.flags(self.slots.end)
        return found

    def disliked(self, request: PodRequest, slots: NDArray[np.intp]) -> list[Reason]:
        """Why plugins refuse each of these slots; they do."""
        standing = self._said(request)
        return [standing.refused.get(slot, standing.said[standing.codes[slot]]) for slot in slots.tolist()]

    def weigh(self, request: PodRequest) -> Scores:
        """A score for each slot, minus infinity where it does not fit; a copy, for callers that choose."""
        scores = self._standing(request).scores[: self.slots.end]
        return np.where(self._possible(request, ()), scores, np.float32(NO_FIT))

    def explain(self, request: PodRequest, barred: Sequence[Barred] = ()) -> Explanation:
        """Counted over nodes. Plugins are asked about nodes that changed since; all, at first."""
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
        """Why plugins refuse one node, whatever room it has; None where they do not."""
        slot = np.array([self._known(node)], dtype=np.intp)
        return next(iter(said_of(self._said(request), slot)), None)

    def renewed(self) -> None:
        """A plugin was made again: what it said before may have been wrong."""
        self._standings.forget()

    def _best(self, request: PodRequest, barred: Sequence[Barred], liked: Scores) -> NDArray[np.intp]:
        """The best nodes that are possible. Mostly some of the best of all are, so these are checked first."""
        best = best_of(liked)
        if not best.size:
            return best
        possible = self._rooms.fit(request.needs, best)
        for each in barred:
            possible &= ~each.at(best)
        if possible.any():
            return best[possible]
        return best_of(only(self._possible(request, barred), liked))

    def _liked(self, standing: Standing, preferences: Scores | None) -> Scores:
        scores = standing.scores[: self.slots.end]
        return scores if preferences is None else scores + preferences[: self.slots.end]

    def _said(self, request: PodRequest) -> Standing:
        """A standing with the reasons why it does not fit, right for all nodes."""
        standing = self._standing(request)
        stale = self.slots.taken(self._standings.unexplained(standing))
        if stale.size:
            verdict = self._side.fits(request, stale.astype(np.int32))
            codes, table = verdict.reasons()
            standing.explain(stale, np.where(verdict.fits, 0, codes + np.uint16(1)), table)
        self._standings.explained(standing)
        return standing

    def _standing(self, request: PodRequest, among: NDArray[np.intp] | None = None) -> Standing:
        def ask(stale: NDArray[np.int32], scores: Scores) -> None:
            self._score(request, stale, scores)

        return self._standings.of(self._side.shape(request), ask, among)

    def _score(self, request: PodRequest, stale: NDArray[np.int32], scores: Scores) -> None:
        asked = self.slots.taken(stale)
        if not asked.size:
            return
        fitting = asked[self._side.fits(request, asked).fits]
        if fitting.size:
            scores[fitting] = self._side.scores(request, fitting)

    def _possible(self, request: PodRequest, barred: Sequence[Barred]) -> Flags:
        """Nodes with room for it that no rule bars."""
        return self._rooms.fit(request.needs, slice(self.slots.end)) & self.unbarred(barred)

    def _open(self, slot: Slot, node: NodeName, inventory: Inventory, total: Room) -> None:
        self.ledger.open(slot, node, inventory, total)
        self._side.node_added(slot, node, inventory)
        self._tell_room(slot)

    def _close(self, slot: Slot) -> Sequence[Holding]:
        holdings = self.ledger.close(slot)
        self._side.node_removed(slot)
        self._standings.changed(slot)
        return holdings

    def _enter(self, holding: Holding) -> None:
        self.ledger.enter(holding)
        self._side.take(holding.slot, holding.allocation)
        self._tell_room(holding.slot)

    def _tell_room(self, slot: Slot) -> None:
        total, free = self.ledger.room(slot)
        self._rooms.set(slot, free)
        self._side.node_room(slot, total, free)
        self._standings.changed(slot)

    def _known(self, node: NodeName) -> Slot:
        slot = self.slots.of(node)
        if slot is None:
            raise ValueError(f"node {node} is not known; add it first")
        return slot
