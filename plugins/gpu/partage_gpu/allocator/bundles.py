"""Cards that must lie close: on which nodes a request's bundles find theirs, and which cards they get.

Nodes of one build with the same cards free have one answer, which is looked for once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.levels import closest_level
from partage_gpu.allocator.plan import Plan
from partage_plugins.answers import Flags, Reals, Slots
from partage_plugins.rules.topology import gathered
from partage_plugins.vocabulary.gpu import CLOSEST, GpuRequest
from partage_plugins.vocabulary.topology import Bundle


class Gathered(NamedTuple):
    """By node: whether bundles find their cards, and which; no card where they find none."""

    fits: Flags
    cards: Flags


def gathered_cards(cluster: Cluster, wanted: GpuRequest, slots: Slots, possible: Flags, ranked: Reals) -> Gathered:
    """Of the possible cards those that the bundles get; in each group those that are worth most."""
    bundles = resolved(cluster, wanted.bundles)
    fits, chosen = np.zeros(len(slots), np.bool_), np.zeros(possible.shape, np.bool_)
    order = np.argsort(-ranked, axis=1, kind="stable")
    known: dict[tuple[int, bytes], tuple[int, ...] | None] = {}
    for row, slot in enumerate(slots.tolist()):
        levels = cluster.nodes[slot].levels
        free = order[row][possible[row, order[row]]]
        key = id(levels), free.tobytes()
        if key not in known:
            known[key] = gathered(levels.by_name, free.tolist(), bundles, wanted.count)
        places = known[key]
        if places is not None:
            fits[row], chosen[row, list(places)] = True, True
    return Gathered(fits, chosen)


def finding(cluster: Cluster, wanted: GpuRequest, slots: Slots, possible: Flags) -> Flags:
    """By node: whether the bundles find their cards among the possible ones."""
    return gathered_cards(cluster, wanted, slots, possible, np.zeros(possible.shape)).fits


def closest_of(cluster: Cluster, plan: Plan) -> tuple[str, ...]:
    """What `CLOSEST` means now in each bundle of a plan: with the cluster's nodes it changes."""
    return tuple(
        bundle.level
        for ask in plan.asks
        for asked, bundle in zip(ask.request.bundles, resolved(cluster, ask.request.bundles), strict=True)
        if asked.level == CLOSEST
    )


def resolved(cluster: Cluster, bundles: tuple[Bundle, ...]) -> tuple[Bundle, ...]:
    """The bundles with a level in place of `CLOSEST`."""
    if all(bundle.level != CLOSEST for bundle in bundles):
        return bundles
    boards = cluster.boards
    return tuple(
        replace(bundle, level=closest_level(boards, bundle.count)) if bundle.level == CLOSEST else bundle
        for bundle in bundles
    )
