"""Chooses cards for one ask among the possible ones: the highest ranked, and the first of equals.

For the final allocation (`chosen_finely`), equally ranked cards are compared by their links. Scoring many nodes omits
that (`chosen_quickly`), which changes no score, since equal cards give equal scores.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from partage_gpu.allocator.bundles import gathered_cards
from partage_gpu.allocator.closeness import tightest
from partage_gpu.allocator.cluster import Node
from partage_gpu.allocator.mix import Mix
from partage_gpu.allocator.one_by_one import IMPOSSIBLE
from partage_gpu.allocator.policies import PolicyJudge, alone_in, isolation, worths, worths_of_sets
from partage_gpu.allocator.trial import Offer
from partage_plugins.answers import Flags, Reals
from partage_plugins.api.names import Slot

_BY_ORDER: Final = frozenset(("fgd", "kubeshare"))
"""Policies that take the first of equal cards, as published."""


def ranked_cards(mix: Mix, offer: Offer, judge: PolicyJudge) -> Reals:
    """The rank of each card; negative where it is not possible."""
    return np.where(offer.possible, worths(mix, offer, judge), IMPOSSIBLE)


def one_of(mix: Mix, node: Node, equal: list[int]) -> int:
    """The card for an ask of one, among the highest ranked; the same choice as `chosen_finely`."""
    if len(equal) == 1 or mix.alone in _BY_ORDER or mix.weight_of("topology"):
        return equal[0]
    alone = alone_in(node.closeness, tuple(not holders for holders in node.holders))
    return max(equal, key=lambda place: (alone[place], -place))


def chosen_quickly(mix: Mix, offer: Offer, judge: PolicyJudge) -> tuple[Flags, Reals]:
    """The best cards of each node, and their score."""
    return _chosen(mix, offer, judge, ranked_cards(mix, offer, judge))


def chosen_finely(mix: Mix, offer: Offer, judge: PolicyJudge) -> tuple[Flags, Reals]:
    """The same for a single node, with ties broken by links."""
    all_ranked = ranked_cards(mix, offer, judge)
    chosen, score = _chosen(mix, offer, judge, all_ranked)
    if _has_bundles(offer) or mix.alone in _BY_ORDER or mix.weight_of("topology") or not chosen.any():
        return chosen, score
    ranked = all_ranked[0]
    least = ranked[chosen[0]].min()
    better = (ranked > least).nonzero()[0].tolist()
    equal = (ranked == least).nonzero()[0].tolist()
    if len(better) + len(equal) == offer.count:
        return chosen, score
    places = [*better, *_told_apart(offer, equal, better)]
    return _only(offer, np.array([places])), score


def _chosen(mix: Mix, offer: Offer, judge: PolicyJudge, ranked: Reals) -> tuple[Flags, Reals]:
    if offer.count == 1:
        best = ranked.argmax(axis=1)[:, None]
        return _only(offer, best), ranked.max(axis=1)
    if offer.request is not None and offer.request.bundles:
        chosen = gathered_cards(offer.cluster, offer.request, offer.slots, offer.possible, ranked).cards
    elif mix.weight_of("topology"):
        others = mix.without("topology")
        chosen = _tight_sets(offer, ranked_cards(others, offer, judge) if others.weights else ranked * 0)
    else:
        chosen = _only(offer, np.argsort(-ranked, axis=1, kind="stable")[:, : offer.count])
    return chosen, worths_of_sets(mix, offer, chosen, judge)


def _has_bundles(offer: Offer) -> bool:
    return offer.request is not None and bool(offer.request.bundles)


def _told_apart(offer: Offer, equal: list[int], better: list[int]) -> tuple[int, ...]:
    """The missing number of cards, chosen among equal ones."""
    missing = offer.count - len(better)
    if offer.count == 1:
        alone = isolation(offer)[0]
        return (max(equal, key=lambda place: (alone[place], -place)),)
    close = offer.cluster.nodes[Slot(int(offer.slots[0]))].closeness
    return tightest(close, equal, missing, better)


def _tight_sets(offer: Offer, ranked: Reals) -> Flags:
    """Close cards, from the half that other policies rank highest."""
    chosen = np.zeros(offer.possible.shape, np.bool_)
    known: dict[tuple[int, bytes], tuple[int, ...]] = {}
    for row, slot in enumerate(offer.slots.tolist()):
        close = offer.cluster.nodes[slot].closeness
        candidates = np.flatnonzero(offer.possible[row])
        if len(candidates) > offer.count:
            keep = max(offer.count, (len(candidates) + 1) // 2)
            worth = ranked[row, candidates]
            candidates = candidates[worth >= np.sort(worth)[-keep]]
        key = id(close), candidates.tobytes()
        if key not in known:
            known[key] = tightest(close, candidates.tolist(), offer.count)
        chosen[row, list(known[key])] = True
    return chosen


def _only(offer: Offer, places: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Flags:
    """The given cards of each row, if they are possible."""
    chosen = np.zeros(offer.possible.shape, np.bool_)
    chosen[np.arange(len(chosen))[:, None], places] = True
    chosen &= offer.possible
    return chosen
