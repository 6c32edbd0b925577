"""The hooks of the plugin that owns cards in the scheduler."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Hashable, Mapping, Sequence
from functools import partial

import numpy as np

from partage_gpu.allocator.bundles import closest_of
from partage_gpu.allocator.choice import one_of
from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.memo import BestCards, Plans, Possible
from partage_gpu.allocator.one_by_one import FEW, possible_on, serves
from partage_gpu.allocator.placement import (
    fitting,
    placed_finely,
    possible_for,
    ranked_for,
    scored,
    wants_one,
)
from partage_gpu.allocator.plan import Ask, Plan
from partage_gpu.allocator.policies import PolicyJudge
from partage_gpu.allocator.reasons import reason_codes, reasons_for, with_figures
from partage_gpu.allocator.settings import AllocatorSettings, settings_from
from partage_gpu.allocator.shapes import GUESSED
from partage_gpu.allocator.typical import ShapeCounts, shape_of
from partage_plugins.answers import Codes, Fits, Flags, Scores, Slots
from partage_plugins.api.allocation import Allocation
from partage_plugins.api.gpu import GPU, Card, GpuGrant
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.names import ContainerName, Slot
from partage_plugins.api.pods import PodRequest, Resources
from partage_plugins.api.usage import usages
from partage_plugins.errors import Refused
from partage_plugins.hooks import hookimpl


class GpuAllocator:
    """Owns the kind `gpu` in the scheduler."""

    def __init__(self, settings: AllocatorSettings | None = None) -> None:
        """Settings are passed for replays; a scheduler reads them from its environment."""
        self._settings = settings or settings_from(os.environ)
        self.cluster = Cluster()
        """The accounting of all cards; only this class changes it."""
        self._learnt = ShapeCounts() if self._settings.shapes is None else None
        self._judge = PolicyJudge(self.cluster, self._settings.shapes or GUESSED)
        self._plans = Plans(self._settings.mix, self._settings.exclusion_namespaces)
        self.bests = BestCards()
        """Rankings from scoring, reused if choosing again would give the same."""
        self._possible: Possible | None = None
        self._epoch = 0
        """Incremented when scores of all nodes change."""

    @hookimpl
    def partage_kind(self) -> object:
        return dataclasses.replace(GPU, in_namespace=None) if self._settings.global_tags else GPU

    @hookimpl
    def partage_shape(self, request: PodRequest) -> Hashable:
        """What the results depend on; a pod is learnt from when its shape is requested for the first time."""
        plan, same, _ = self._plans.of(request)
        if self._learnt is not None:
            learnt = self._learnt.from_pod(request.pod.uid, shape_of(plan, self.cluster))
            if learnt is not None:
                self._judge, self._epoch = PolicyJudge(self.cluster, learnt), self._epoch + 1
        self._look()
        return same, self._epoch, closest_of(self.cluster, plan)

    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        """Adds a node with nothing taken on it."""
        self.cluster.add(slot, inventory.part(GPU))

    @hookimpl
    def partage_node_removed(self, slot: Slot) -> None:
        """Removes a node, with everything taken on it."""
        self.cluster.remove(slot)

    @hookimpl
    def partage_node_room(self, slot: Slot, total: Resources, free: Resources) -> None:
        """Updates how scarce CPU is beside a node's cards."""
        self.cluster.room(slot, total, free)

    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        """Whether all containers find their cards together."""
        plan = self._plan(request)
        fits: Flags
        if not plan.asks:
            fits = np.ones(len(slots), np.bool_)
        elif self._is_quick(plan, slots):
            fits = np.array([bool(places) for places in possible_on(self.cluster, plan.asks[0], slots)], np.bool_)
        elif wants_one(plan):
            possible = possible_for(self.cluster, plan, slots)
            fits = np.logical_or.reduce(possible, axis=1)
            self._possible = Possible(plan, slots, self.cluster.moment, possible, fits)
        else:
            fits = fitting(self._judge, plan, slots)
        table = reasons_for(self.cluster, plan)
        if self.cluster.beyond and not fits.all():
            codes = _codes(self.cluster, plan, slots, fits)
            return Fits(fits, *with_figures(self.cluster, plan, slots, codes, table))
        return Fits(fits, partial(_codes, self.cluster, plan, slots, fits), table)

    @hookimpl
    def partage_scores(self, request: PodRequest, slots: Slots) -> Scores:
        """Scores by the policy of each container; pods without cards should leave CPU to those with cards."""
        plan = self._plan(request)
        if self._is_quick(plan, slots):
            return self._quickly(request, plan, slots)
        if not wants_one(plan):
            return scored(self._judge, plan, slots).astype(np.float32)
        possible = self._possible.of(self.cluster, plan, slots) if self._possible is not None else None
        if possible is None:
            possible = possible_for(self.cluster, plan, slots)
        ranked = ranked_for(self._judge, plan, slots, possible)
        self.bests.note(self._shape(request), self.cluster, slots, ranked)
        best: Scores = ranked.max(axis=1).astype(np.float32)
        return best

    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[GpuGrant]]:
        """The cards for which the node was scored."""
        plan = self._plan(request)
        best = self.bests.best(self._shape(request), self.cluster, slot) if wants_one(plan) else []
        if best:
            node, ask = self.cluster.nodes[slot], plan.asks[0]
            return {ask.container: [_grant(ask, node.cards[one_of(ask.mix, node, best)])]}
        found = placed_finely(self._judge, plan, slot)
        if not found.fits[0]:
            alone, table = np.array([slot], np.int32), reasons_for(self.cluster, plan)
            codes, table = with_figures(self.cluster, plan, alone, reason_codes(self.cluster, plan, alone), table)
            raise Refused(f"the pod does not fit on this node: {table[codes[0]]}")
        cards = self.cluster.nodes[slot].cards
        grants: dict[ContainerName, list[GpuGrant]] = {}
        for ask, chosen in zip(plan.asks, found.cards, strict=True):
            places = np.flatnonzero(chosen[0]).tolist()
            grants.setdefault(ask.container, []).extend(_grant(ask, cards[place]) for place in places)
        return grants

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        self.cluster.take(slot, usages(allocation))

    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Allocation) -> None:
        self.cluster.give_back(slot, usages(allocation))

    def _is_quick(self, plan: Plan, slots: Slots) -> bool:
        return len(slots) <= FEW and serves(plan, self.cluster)

    def _quickly(self, request: PodRequest, plan: Plan, slots: Slots) -> Scores:
        look = self._judge.one_by_one.best
        if not plan.asks:
            return np.array([look(plan, slot, []).worth for slot in slots.tolist()], np.float32)
        shape, worths = self._shape(request), list[float]()
        for slot, possible in zip(slots.tolist(), possible_on(self.cluster, plan.asks[0], slots), strict=True):
            worth, places = look(plan, slot, possible)
            self.bests.note_one(shape, self.cluster, slot, places)
            worths.append(worth)
        return np.array(worths, np.float32)

    def _plan(self, request: PodRequest) -> Plan:
        self._look()
        return self._plans.of(request).plan

    def _shape(self, request: PodRequest) -> Hashable:
        return self._plans.of(request).same, self._epoch

    def _look(self) -> None:
        if self._judge.looks():
            self._epoch += 1


def _codes(cluster: Cluster, plan: Plan, slots: Slots, fits: Flags) -> Codes:
    """The reason codes for the nodes on which the pod does not fit."""
    codes = np.zeros(len(slots), np.uint8)
    codes[~fits] = reason_codes(cluster, plan, slots[~fits])
    return codes


def _grant(ask: Ask, card: Card) -> GpuGrant:
    wanted = ask.request
    return GpuGrant(
        card=card.id,
        share_milli=wanted.share_milli,
        limit_milli=wanted.limit_milli,
        memory_bytes=wanted.memory_on(card.memory_bytes),
        movable=wanted.movable,
        tags=wanted.tags,
        role=ask.role,
    )
