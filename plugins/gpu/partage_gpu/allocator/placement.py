"""Places a pod's asks on the cards of many nodes at once: where it fits, on which cards, and with which score.

Asks are placed one after another, each on the cards that its policy ranks highest. For a pod with one ask that is
exact: it fits where enough cards are possible. For several asks a greedy choice can fail where another would succeed:
such nodes are then searched one by one (`search`), and the cards that are found are placed like chosen ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from partage_gpu.allocator.choice import chosen_finely, chosen_quickly, ranked_cards
from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.plan import Ask, Plan
from partage_gpu.allocator.policies import PolicyJudge, worths_of_sets
from partage_gpu.allocator.search import Search
from partage_gpu.allocator.trial import Offer, Trial
from partage_plugins.answers import Flags, Reals, Slots
from partage_plugins.api.names import Slot

NO_CARDS: Final[tuple[Flags, ...]] = ()


class Placed(NamedTuple):
    """Results for each node; cards and scores are defined only where the pod fits."""

    fits: Flags
    cards: tuple[Flags, ...]
    """For each ask: the chosen cards of each node."""
    scores: Reals


def fitting(judge: PolicyJudge, plan: Plan, slots: Slots) -> Flags:
    if len(plan.asks) == 1:
        return enough_for(judge.cluster, plan.asks[0], slots)
    return placed(judge, plan, slots).fits


def enough_for(cluster: Cluster, ask: Ask, slots: Slots) -> Flags:
    """Where there are enough cards for one ask alone."""
    enough: Flags = Trial(cluster, slots, 0).possible(ask).sum(axis=1) >= ask.request.count
    return enough


def placed(judge: PolicyJudge, plan: Plan, slots: Slots) -> Placed:
    """Places all asks on each of the nodes."""
    greedy = _put(judge, plan, slots)
    if len(plan.asks) == 1 or greedy.fits.all():
        return greedy
    alone = np.logical_and.reduce([enough_for(judge.cluster, ask, slots) for ask in plan.asks])
    search = Search(judge.cluster, plan)
    for row in np.flatnonzero(alone & ~greedy.fits & _enough_in_all(judge.cluster, plan, slots)).tolist():
        cards = search.cards(Slot(int(slots[row])))
        if cards is not None:
            _replace(greedy, row, _put(judge, plan, slots[row : row + 1], forced=cards))
    return greedy


def _enough_in_all(cluster: Cluster, plan: Plan, slots: Slots) -> Flags:
    """Where all cards together have the share for what runs at once, so that few full nodes need to be searched."""
    milli = sum(ask.request.share_milli * ask.request.count for ask in plan.asks if ask.role != "init")
    enough: Flags = np.maximum(cluster.share_left[slots], 0).sum(axis=1) >= milli
    return enough


def placed_finely(judge: PolicyJudge, plan: Plan, slot: Slot) -> Placed:
    """The same for one node; equally ranked cards are compared by their links."""
    slots = np.array([slot], np.int32)
    fine = _put(judge, plan, slots, finely=True)
    return fine if fine.fits[0] else placed(judge, plan, slots)


def wants_one(plan: Plan) -> bool:
    """Whether a pod wants one card, as most do."""
    return len(plan.asks) == 1 and plan.asks[0].request.count == 1


def possible_for(cluster: Cluster, plan: Plan, slots: Slots) -> Flags:
    """The possible cards for a pod that wants one."""
    return Trial(cluster, slots, 0).possible(plan.asks[0])


def ranked_for(judge: PolicyJudge, plan: Plan, slots: Slots, possible: Flags) -> Reals:
    """The rank of each of these cards for the pod."""
    trial, ask = Trial(judge.cluster, slots, plan.cpu_milli), plan.asks[0]
    return ranked_cards(ask.mix, Offer(trial, possible, ask), judge)


def scored(judge: PolicyJudge, plan: Plan, slots: Slots) -> Reals:
    """The score of each node. A pod that needs no card should not take the CPU that cards need."""
    if wants_one(plan):
        best: Reals = ranked_for(judge, plan, slots, possible_for(judge.cluster, plan, slots)).max(axis=1)
        return best
    if plan.asks:
        return placed(judge, plan, slots).scores
    trial = Trial(judge.cluster, slots, plan.cpu_milli)
    none = np.zeros(trial.level.shape, np.bool_)
    return worths_of_sets(plan.mix, Offer(trial, none, None), none, judge)


def _put(
    judge: PolicyJudge,
    plan: Plan,
    slots: Slots,
    *,
    forced: Sequence[Flags] = NO_CARDS,
    finely: bool = False,
) -> Placed:
    trial = Trial(judge.cluster, slots, plan.cpu_milli)
    fits = np.ones(len(slots), np.bool_)
    scores = np.zeros(len(slots))
    cards: list[Flags] = []
    choose = chosen_finely if finely else chosen_quickly
    for number, ask in enumerate(plan.asks):
        offer = Offer(trial, trial.possible(ask), ask)
        if forced:
            chosen, score = forced[number], worths_of_sets(ask.mix, offer, forced[number], judge)
        else:
            fits &= offer.possible.sum(axis=1) >= ask.request.count
            chosen, score = choose(ask.mix, offer, judge)
        scores += score
        cards.append(chosen)
        if len(plan.asks) > 1:
            trial.put(ask, chosen)
    return Placed(fits, tuple(cards), scores / max(len(plan.asks), 1))


def _replace(all_nodes: Placed, row: int, one: Placed) -> None:
    all_nodes.fits[row] = True
    all_nodes.scores[row] = one.scores[0]
    for cards, mine in zip(all_nodes.cards, one.cards, strict=True):
        cards[row] = mine[0]
