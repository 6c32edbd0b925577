"""Pods that can't be read: what they hold on their nodes is unknown, so nobody is given a share there meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from partage_plugins.vocabulary import NodeName, PodUid, Slot
from partage_plugins.vocabulary.reasons import Reason
from partage_scheduler.deciding import Barred

UNREAD: Final = Reason("unread-pod", "node(s) had a pod that can't be read")


class UnreadPods:
    """All of them; few, if any."""

    def __init__(self) -> None:
        self._nodes: dict[PodUid, NodeName] = {}

    def put(self, uid: PodUid, node: NodeName) -> None:
        """One that is on this node."""
        self._nodes[uid] = node

    def remove(self, uid: PodUid) -> bool:
        """It can be read again, or is gone; whether it could not be read before."""
        return self._nodes.pop(uid, None) is not None

    def clear(self) -> bool:
        """Whoever is still there is told of again; whether there was one."""
        had_some = bool(self._nodes)
        self._nodes.clear()
        return had_some

    def barred(self, end: int, slot: Callable[[NodeName], Slot | None]) -> list[Barred]:
        """The nodes of such pods, for a request that asks for devices."""
        slots = [at for node in self._nodes.values() if (at := slot(node)) is not None]
        if not slots:
            return []
        flags = np.zeros(end, dtype=np.bool_)
        flags[slots] = True
        return [Barred(UNREAD, flags)]
