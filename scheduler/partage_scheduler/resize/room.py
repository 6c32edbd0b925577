"""Whether a pod on a node may have these amounts on its cards, or a suspended one its cards again. Pure.

Decided by the same plugins as a new pod's request, restricted to the pod's node and cards: beside all other pods, and
beside resources kept for pods of at least its priority.
"""

from __future__ import annotations

from partage_plugins.api import GPU, Allocation
from partage_plugins.errors import PartageError, PluginBroken
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


def against_resuming(cycle: Cycle, placed: PlacedPod, now: float) -> str | None:
    """Why it can't have them now; None if it can. Raises only `PluginBroken`."""
    try:
        return no_room(cycle, placed, placed.allocation, now)
    except PluginBroken:
        raise
    except PartageError as error:
        return str(error)


def suspended_words(cycle: Cycle, placed: PlacedPod, now: float) -> str:
    """For which pod it is suspended, and what it waits for; empty for a pod that is not."""
    suspended, cluster = placed.allocation.suspended, cycle.cluster
    if suspended is None:
        return ""
    other = cluster.placed_pods.get(suspended.by)
    name = f"pod {suspended.by}" if other is None else f"pod {other.pod.namespace}/{other.pod.name}"
    report = cluster.suspensions.report(placed)
    if report is not None and report.why:
        waits = f"its node can't: {report.why}"
    elif report is None or not report.is_done:
        waits = "its node is to take its memory off the card"
    elif cluster.waits_on(suspended.by, placed.node):
        waits = "that pod is about to take its room"
    else:
        why = against_resuming(cycle, placed, now)
        waits = (
            "its room is free again, and it is resumed"
            if why is None
            else f"it is resumed once its room is free: {why}"
        )
    return f"suspended for {name}; {waits}"
