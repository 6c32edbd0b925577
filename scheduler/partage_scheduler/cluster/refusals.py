"""Nodes whose kubelet has just refused a pod for lack of room (`OutOfcpu` and its kind).

Beside another scheduler that is an ordinary race, and soon over: its pod is told before the refusal is, and counts by
then. But kubelet may know of more than the API server does: a pod that was deleted by force and still runs, a static
pod without an object, room that the node lost. Then the owner's next pod would go to the same node, and the one after
it, as fast as they are made. So for a while pods of that namespace go elsewhere or wait. Of other namespaces nothing is
asked: nobody can close a node to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from partage_plugins.vocabulary import NodeName
from partage_plugins.vocabulary.reasons import Reason
from partage_scheduler.decision import Barred, SlotTable

REFUSED: Final = Reason("refused-lately", "node(s) just refused a pod of this namespace for lack of room", lasts=True)
RESTS_S: Final = 30.0
"""kubelet tells a change of its node within 10 s, and most pods that are to end do so within their grace of 30."""


class Refusals:
    def __init__(self) -> None:
        self._until: dict[tuple[str, NodeName], float] = {}
        """By namespace and node; the first to end comes first."""

    def put(self, namespace: str, node: NodeName, now: float) -> None:
        self._forget(now)
        self._until.pop((namespace, node), None)
        self._until[namespace, node] = now + RESTS_S

    def barred(self, namespace: str, now: float, slots: SlotTable) -> Iterator[Barred]:
        """Nodes that are not chosen now for pods of this namespace."""
        self._forget(now)
        nodes = [node for where, node in self._until if where == namespace]
        if nodes and (flags := slots.flags(nodes)).any():
            yield Barred(REFUSED, flags)

    def _forget(self, now: float) -> None:
        over = list(takewhile(lambda key: self._until[key] <= now, self._until))
        for key in over:
            del self._until[key]
