"""Whether a pod on a node may have these amounts on its cards. Pure.

Decided by the same plugins as a new pod's request, restricted to the pod's node and cards: beside all other pods, and
beside resources kept for pods of at least its priority.
"""

from __future__ import annotations

from partage_plugins.api import GPU, Allocation
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.cycle import Cycle
from partage_scheduler.resize.wanted import as_request


def no_room(cycle: Cycle, placed: PlacedPod, wanted: Allocation, now: float) -> str | None:
    """Why it can't have them now; None if it can. Raises errors of plugins and of reading the pod's request."""
    cluster, decider, before = cycle.cluster, cycle.decider, placed.allocation
    if (reason := cluster.fleet.why_not(placed.node, now)) is not None:
        return str(reason)
    request = as_request(cycle.request(placed.pod), wanted)
    with cluster.kept.lifted(placed.pod), cluster.suspensions.lifted(placed.pod, placed.node):
        decider.give_back(placed.pod.uid)
        try:
            found = decider.decide_on(request, placed.node)
            why = decider.said_of(request, placed.node) if found is None else None
        finally:
            decider.take(before, placed.needs)
    if found is None:
        return f"no room beside the others on its cards of node {placed.node}: {why}"
    given = {name: {grant.card for grant in grants} for name, grants in found.allocation.of(GPU).items()}
    if given != {name: {grant.card for grant in grants} for name, grants in wanted.of(GPU).items()}:
        return "the plugins of the scheduler would give it other cards"
    return None
