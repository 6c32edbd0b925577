"""What each pod holds on each node: the record that is replayed to a recreated plugin.

The record is changed before plugins are called, so that a plugin which fails midway gets exactly the state it should
have. Pods without devices are recorded too, because they hold CPU and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from partage_plugins.api import Allocation, Inventory, NodeName, PodUid, Resources, Slot
from partage_scheduler.decision.free_resources import minus, plus


@dataclass(frozen=True)
class Holding:
    slot: Slot
    allocation: Allocation
    needs: Resources


@dataclass
class _Page:
    node: NodeName
    inventory: Inventory
    total: Resources
    free: Resources
    holdings: dict[PodUid, Holding]


class Ledger:
    """All nodes with what is held on them; the `Record` of the plugin framework."""

    def __init__(self) -> None:
        self._pages: dict[Slot, _Page] = {}
        self._holdings: dict[PodUid, Holding] = {}

    def nodes(self) -> Iterable[tuple[Slot, NodeName, Inventory]]:
        return [(slot, page.node, page.inventory) for slot, page in self._pages.items()]

    def allocations(self) -> Iterable[tuple[Slot, Allocation]]:
        return [(held.slot, held.allocation) for held in self._holdings.values()]

    def rooms(self) -> Iterable[tuple[Slot, Resources, Resources]]:
        """Total and free CPU and memory of each node."""
        return [(slot, page.total, page.free) for slot, page in self._pages.items()]

    def room(self, slot: Slot) -> tuple[Resources, Resources]:
        page = self._pages[slot]
        return page.total, page.free

    def holding(self, pod: PodUid) -> Holding | None:
        return self._holdings.get(pod)

    def open(self, slot: Slot, node: NodeName, inventory: Inventory, total: Resources) -> None:
        """Adds a node on which nothing is held yet."""
        self._pages[slot] = _Page(node, inventory, total, total, {})

    def close(self, slot: Slot) -> Sequence[Holding]:
        """Removes a node; returns what was held on it, in the order in which it was taken."""
        holdings = tuple(self._pages.pop(slot).holdings.values())
        for holding in holdings:
            del self._holdings[holding.allocation.pod]
        return holdings

    def resize(self, slot: Slot, total: Resources) -> None:
        page = self._pages[slot]
        page.free = plus(page.free, minus(total, page.total))
        page.total = total

    def enter(self, holding: Holding) -> None:
        pod = holding.allocation.pod
        if pod in self._holdings:
            raise ValueError(f"pod {pod} holds an allocation already; give it back first")
        page = self._pages[holding.slot]
        page.holdings[pod] = self._holdings[pod] = holding
        page.free = minus(page.free, holding.needs)

    def strike(self, pod: PodUid) -> Holding | None:
        holding = self._holdings.pop(pod, None)
        if holding is not None:
            page = self._pages[holding.slot]
            del page.holdings[pod]
            page.free = plus(page.free, holding.needs)
        return holding
