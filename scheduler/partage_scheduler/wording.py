"""Why a pod is not placed, in upstream's grammar and in few words, so that they count together. And what may help.

`0/5 nodes are available: 2 Insufficient GPU share, 3 node(s) had untolerated taint {gpu: yes}.` A node counts once, for
the first reason that was found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partage_scheduler.cluster.causes import NOTHING, Cause
from partage_scheduler.deciding import Explanation
from partage_scheduler.objects import ApiPod

NO_NODES: Final = "no nodes available to schedule pods"


def nowhere(explanation: Explanation) -> str:
    """One sentence for an event and a condition."""
    if not explanation.nodes:
        return NO_NODES
    return in_all(explanation.nodes, (f"{count} {why}" for why, count in explanation.reasons.items() if count))


def in_all(nodes: int, reasons: Iterable[str]) -> str:
    """The sentence around it."""
    return f"0/{nodes} nodes are available: {', '.join(sorted(reasons))}."


def causes_of(pod: ApiPod, explanation: Explanation, *, has_devices: bool) -> frozenset[Cause]:
    """What may make it fit, as far as is known; too many rather than too few."""
    causes = {Cause.NODE, Cause.NAMESPACE}
    if has_devices:
        causes.add(Cause.INVENTORY)
    if not all(why.lasts for why, count in explanation.reasons.items() if count):
        causes.add(Cause.FREED)
    if pod.spec.volumes:
        causes.add(Cause.VOLUME)
    if needs_others(pod):
        causes.add(Cause.POD)
    return frozenset(causes)


def needs_others(pod: ApiPod) -> bool:
    """Whether it may fit because another pod has come."""
    affinity = pod.spec.affinity
    near = affinity is not None and affinity.pod_affinity is not None and affinity.pod_affinity.required
    return bool(near or pod.spec.topology_spread_constraints)


def lacks(gang: str, lacking: int, size: int) -> str:
    """What a gang is told that waits for its pods."""
    return f"gang {gang} is bound all or none: {lacking} of its {size} pods are not there yet."


def with_gang(gang: str, pod: str, message: str) -> str:
    """What the others of a gang are told."""
    return f"gang {gang} is bound all or none, and pod {pod} fits nowhere: {message}"


NEVER: Final = NOTHING
"""Of a pod that only its owner can help, by changing it."""
