"""Nodes whose kubelet recently rejected a pod for lack of resources (`OutOfcpu` and the like).

Next to another scheduler this is an ordinary race that is soon over: the other pod's event arrives before the
rejection, so the pod counts by then. But kubelet may know of more than the API server: a pod that was force-deleted and
still runs, a static pod without an object, resources that the node lost. The owner's next pods would then go to the
same node as fast as they are created. So for a while pods of that namespace go elsewhere or wait. Other namespaces are
not affected, so that no one can close a node to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from partage_plugins.api import NodeName
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes, SlotTable

REFUSED: Final = Reason("refused-lately", "node(s) just refused a pod of this namespace for lack of room", lasts=True)
RESTS_S: Final = 30.0
"""kubelet reports a change of its node within 10 s, and most terminating pods end within their grace period of 30 s."""


class Refusals:
    def __init__(self) -> None:
        self._until: dict[tuple[str, NodeName], float] = {}
        """Expiry by namespace and node, the earliest first."""

    def put(self, namespace: str, node: NodeName, now: float) -> None:
        self._forget(now)
        self._until.pop((namespace, node), None)
        self._until[namespace, node] = now + RESTS_S

    def barred(self, namespace: str, now: float, slots: SlotTable) -> Iterator[FilteredNodes]:
        """Nodes filtered out for pods of this namespace."""
        self._forget(now)
        nodes = [node for where, node in self._until if where == namespace]
        if nodes and (flags := slots.flags(nodes)).any():
            yield FilteredNodes(REFUSED, flags)

    def _forget(self, now: float) -> None:
        over = list(takewhile(lambda key: self._until[key] <= now, self._until))
        for key in over:
            del self._until[key]
