"""Whether a suspended pod may have its cards again, and what it waits for. Pure."""

from __future__ import annotations

from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.cycle import Cycle
from partage_scheduler.resize.room import no_room


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
