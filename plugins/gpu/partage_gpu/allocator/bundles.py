"""Cards that must be close: on which nodes a request's bundles fit, and which cards they get.

Nodes with the same hardware and the same free cards share one result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from partage_gpu.allocator.cluster import Cluster
from partage_gpu.allocator.levels import closest_level
from partage_gpu.allocator.plan import Plan
from partage_plugins.answers import Flags, Reals, Slots
from partage_plugins.api.gpu import CLOSEST, GpuRequest
from partage_plugins.api.topology import Bundle
from partage_plugins.rules.topology import gathered


class Gathered(NamedTuple):
    """By node: whether the bundles fit, and on which cards; no cards where they do not fit."""

    fits: Flags
    cards: Flags


def gathered_cards(cluster: Cluster, wanted: GpuRequest, slots: Slots, possible: Flags, ranked: Reals) -> Gathered:
    """Chooses the bundles' cards among the possible ones; in each group the highest ranked."""
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
    """By node: whether the bundles fit on the possible cards."""
    return gathered_cards(cluster, wanted, slots, possible, np.zeros(possible.shape)).fits


def closest_of(cluster: Cluster, plan: Plan) -> tuple[str, ...]:
    """The current meaning of `CLOSEST` in each bundle of a plan; it changes with the cluster's nodes."""
    return tuple(
        bundle.level
        for ask in plan.asks
        for asked, bundle in zip(ask.request.bundles, resolved(cluster, ask.request.bundles), strict=True)
        if asked.level == CLOSEST
    )


def resolved(cluster: Cluster, bundles: tuple[Bundle, ...]) -> tuple[Bundle, ...]:
    """The bundles with `CLOSEST` replaced by a level."""
    if all(bundle.level != CLOSEST for bundle in bundles):
        return bundles
    boards = cluster.boards
    return tuple(
        replace(bundle, level=closest_level(boards, bundle.count)) if bundle.level == CLOSEST else bundle
        for bundle in bundles
    )
