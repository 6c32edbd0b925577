"""What claims hold on nodes, counted in addition to pods; on an unknown node it counts once the node is added.

Cards are found in the node's inventory by their devices' names, so what counts follows from the current inventory.
"""

from __future__ import annotations

from collections.abc import Callable

from partage_plugins.api import GPU, Allocation, GpuPart, Inventory, NodeName, Resources
from partage_scheduler.claims.results import holder_of
from partage_scheduler.decision import Decider

Count = Callable[[GpuPart | None], Allocation]
"""What one claim holds of a node with these cards."""
_NOTHING = Resources()


class Holdings:
    def __init__(self, decider: Decider, inventory: Callable[[NodeName], Inventory | None]) -> None:
        """`inventory` returns that of a known node."""
        self._decider, self._inventory = decider, inventory
        self._counts: dict[str, dict[NodeName, Count]] = {}
        self._on: dict[NodeName, dict[str, None]] = {}

    def on(self, node: NodeName) -> tuple[str, ...]:
        """The uids of claims that hold something there."""
        return tuple(self._on.get(node, ()))

    def of(self, uid: str) -> list[Allocation]:
        """All that a claim holds on known nodes."""
        found = (self._decider.ledger.holding(holder_of(uid, node)) for node in self._counts.get(uid, ()))
        return [each.allocation for each in found if each is not None]

    def put(self, uid: str, node: NodeName, count: Count) -> None:
        self._counts.setdefault(uid, {})[node] = count
        self._on.setdefault(node, {})[uid] = None
        self._take(uid, node, count)

    def remove(self, uid: str) -> bool:
        """Releases what a claim holds; returns whether it held anything."""
        counts = self._counts.pop(uid, {})
        for node in counts:
            del self._on[node][uid]
            if not self._on[node]:
                del self._on[node]
            self._decider.give_back(holder_of(uid, node))
        return bool(counts)

    def node_comes(self, node: NodeName) -> None:
        """Counts what claims hold on a node that was added, or whose devices changed."""
        for uid in self.on(node):
            self._take(uid, node, self._counts[uid][node])

    def _take(self, uid: str, node: NodeName, count: Count) -> None:
        inventory = self._inventory(node)
        if inventory is not None:
            self._decider.give_back(holder_of(uid, node))
            self._decider.take(count(inventory.part(GPU)), _NOTHING)
