"""Why a pod does not fit on a node: few, stable reasons.

Cards are filtered step by step, and the step that leaves too few of them is the reason. Computed only for nodes on
which the pod does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from partage_gpu.allocator.beyond import left_for_movers
from partage_gpu.allocator.bundles import finding, resolved
from partage_gpu.allocator.cluster import CLOSED, Cluster, Node
from partage_gpu.allocator.needs import UNWANTED, for_claims, needs_of, wanted_cards
from partage_gpu.allocator.plan import Plan
from partage_plugins.answers import Codes, Ints, Slots
from partage_plugins.api.card_memory import in_words
from partage_plugins.api.gpu import NUMA, NVLINK, PCIE, GpuRequest
from partage_plugins.api.names import Slot
from partage_plugins.api.reasons import Reason

REASONS: Final = (
    Reason("gpu/no-cards", "node(s) had no cards", lasts=True),
    Reason("gpu/too-few-healthy", "node(s) had too few healthy cards to share", lasts=True),
    Reason("gpu/too-few-wanted", "node(s) had too few cards as asked for", lasts=True),
    Reason("gpu/share", "Insufficient GPU share"),
    Reason("gpu/memory", "Insufficient GPU memory"),
    Reason("gpu/in-use", "node(s) had too few cards that hold nothing else"),
    Reason("gpu/too-few-close", "node(s) had too few cards {}", lasts=True),
    Reason("gpu/close", "node(s) had too few free cards {}"),
    Reason("gpu/tags", "node(s) had cards whose tags keep the pod away"),
    Reason("gpu/together", "node(s) had no cards for all containers together"),
)
_NO_CARDS, _CLOSED, _UNWANTED, _SHARE, _MEMORY, _IN_USE, _FAR, _APART, _TAGS, _TOGETHER = range(len(REASONS))
_CLOSE: Final = {
    NVLINK: "joined by NVLink",
    PCIE: "behind one PCIe switch",
    NUMA: "on one NUMA node",
}
MEMORY_BEYOND: Final = Reason("gpu/memory-beyond", "Insufficient GPU memory ({})")
"""Used instead of `gpu/memory` on an oversubscribed node, with the figures of the card that has the most left."""
NO_MODEL: Final = Reason("gpu/no-model", "node(s) had no card of a model as asked for (there are {})", lasts=True)
"""Used instead of `gpu/too-few-wanted` if the cluster has none of these models: most are misspelt."""
_MOST_MODELS: Final = 4
_MOST_REASONS: Final = 250
_FITS: Final = 255


def reasons_for(cluster: Cluster, plan: Plan) -> tuple[Reason, ...]:
    """The table of reasons, with the required level of the first bundle and the existing models filled in."""
    table = list(REASONS)
    bundles = next((ask.request.bundles for ask in plan.asks if ask.request.bundles), ())
    if bundles:
        how = _CLOSE.get(resolved(cluster, bundles)[0].level, "close together")
        for number in _FAR, _APART:
            table[number] = table[number].of(how)
    if cluster.cards_of and not any(ask.request.wants_model(model) for ask in plan.asks for model in cluster.cards_of):
        table[_UNWANTED] = NO_MODEL.of(_some(sorted(cluster.cards_of)))
    return tuple(table)


def _some(models: Sequence[str]) -> str:
    more = f" and {len(models) - _MOST_MODELS} more" if len(models) > _MOST_MODELS else ""
    return ", ".join(models[:_MOST_MODELS]) + more


def with_figures(
    cluster: Cluster, plan: Plan, slots: Slots, codes: Codes, table: tuple[Reason, ...]
) -> tuple[Codes, tuple[Reason, ...]]:
    """Adds figures to lack of memory on oversubscribed cards, for as many nodes as the table has space for."""
    places = {reason: place for place, reason in enumerate(table)}
    told = codes.copy()
    for row in np.flatnonzero(codes == _MEMORY).tolist():
        node = cluster.nodes[Slot(int(slots[row]))]
        if node.pledges and len(places) < _MOST_REASONS:
            told[row] = places.setdefault(MEMORY_BEYOND.of(_figures(node, plan)), len(places))
    return told, tuple(places)


def _figures(node: Node, plan: Plan) -> str:
    """The figures of the card with the most left for the first ask, preferably among those that it wants."""
    wanted = plan.asks[0].request
    mine = [place for place in node.pledges if wanted.wants(node.cards[place])] or node.pledges
    pledges = [node.pledges[place] for place in mine]
    nearest = max(pledges, key=lambda each: each.capacity.left(each.now, movable=wanted.movable))
    return in_words(nearest.capacity, nearest.now)


def reason_codes(cluster: Cluster, plan: Plan, slots: Slots) -> Codes:
    """For each node the reason of the first ask that can't be met, or that they can't be met together."""
    codes = np.full(len(slots), _TOGETHER, np.uint8)
    for ask in reversed(plan.asks):
        alone = _codes_of(cluster, ask.request, slots)
        codes = np.where(alone == _FITS, codes, alone)
    return codes if len(plan.asks) > 1 else np.minimum(codes, np.uint8(_TAGS))


def _codes_of(cluster: Cluster, wanted: GpuRequest, slots: Slots) -> Codes:
    make, share = cluster.make[slots], cluster.share_left[slots]
    needs = needs_of(cluster, wanted)[make]
    steps = np.empty((6, *make.shape), np.bool_)
    steps[_NO_CARDS] = make > 0
    steps[_CLOSED] = (share > CLOSED) & (for_claims(cluster)[make] == wanted.is_claim)
    steps[_UNWANTED] = needs < UNWANTED
    if wanted.cards or wanted.cards_not:
        steps[_UNWANTED] &= wanted_cards(cluster, wanted, slots)
    steps[_SHARE] = share >= wanted.least_share_milli
    steps[_MEMORY] = _memory_left(cluster, wanted, slots) >= needs
    steps[_IN_USE] = cluster.holders[slots] == 0 if wanted.idle_cards else True
    passing = np.logical_and.accumulate(steps, axis=0).sum(axis=2)
    enough = passing >= np.array([[1], *[[wanted.count]] * 5])
    codes: Codes = np.where(enough.all(axis=0), _FITS, enough.argmin(axis=0)).astype(np.uint8)
    if wanted.bundles:
        ever = finding(cluster, wanted, slots, np.logical_and.reduce(steps[: _UNWANTED + 1]))
        now = finding(cluster, wanted, slots, np.logical_and.reduce(steps))
        codes[(codes > _UNWANTED) & ~ever] = _FAR
        codes[(codes == _FITS) & ~now] = _APART
    return codes


def _memory_left(cluster: Cluster, wanted: GpuRequest, slots: Slots) -> Ints:
    if wanted.movable and cluster.beyond:
        return left_for_movers(cluster.left_on(slots))
    left: Ints = cluster.memory_left[slots]
    return left
