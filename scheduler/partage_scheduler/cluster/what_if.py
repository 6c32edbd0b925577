"""What-if view of the cluster cache: some pods removed or suspended, others added, or other devices.

While the context is open, all queries see the changed state; on exit everything is restored.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from partage_plugins.api import Allocation, Inventory, NodeName, PodUid, Resources
from partage_scheduler.claims import ClaimBook
from partage_scheduler.cluster.fleet import Fleet
from partage_scheduler.cluster.placed_pods import PlacedPod
from partage_scheduler.cluster.suspended import count_as, without_cards
from partage_scheduler.cluster.unknown import Closed
from partage_scheduler.decision import Decider, Decision
from partage_scheduler.predicates import Predicates

_NOTHING: Final = Resources()


class WhatIf:
    """A context manager; pods may be removed and put back in any order."""

    def __init__(
        self, decider: Decider, predicates: Predicates, closed: Closed, fleet: Fleet, claims: ClaimBook
    ) -> None:
        self._decider, self._predicates, self._closed, self._fleet = decider, predicates, closed, fleet
        self._claims = claims
        self._away: dict[PodUid, PlacedPod] = {}
        self._let_go: dict[PodUid, list[Allocation]] = {}
        """Allocations of claims that end with each removed pod."""
        self._over: list[Allocation] = []
        self._placed: list[PodUid] = []
        self._equipped: set[NodeName] = set()
        self._suspended: dict[PodUid, tuple[PlacedPod, Allocation]] = {}
        """Suspended pods, with what counts for them otherwise."""

    def remove(self, placed: PlacedPod) -> None:
        uid = placed.pod.uid
        self._away[uid] = placed
        self._decider.give_back(uid)
        self._predicates.remove_pod(uid)
        self._closed.remove(uid)
        if ending := self._claims.ending_with(uid):
            self._let_go[uid] = ending
            self._give_back(ending)

    def without_ended_claims(self, node: NodeName) -> None:
        """Releases what claims hold on the node whose pods are all gone."""
        ended = self._claims.ending_on(node)
        self._over += ended
        self._give_back(ended)

    def back(self, placed: PlacedPod) -> None:
        """Puts a removed pod back; no-op for others."""
        if self._away.pop(placed.pod.uid, None) is None:
            return
        self._decider.take(placed.allocation, placed.needs)
        self._predicates.put_pod(self._decider.slots.known(placed.node), placed.pod)
        self._closed.put(placed)
        self._take(self._let_go.pop(placed.pod.uid, []))

    def suspend(self, placed: PlacedPod) -> None:
        """Takes its cards from a pod that stays."""
        self._suspended[placed.pod.uid] = placed, placed.allocation
        count_as(self._decider, placed, without_cards(placed.allocation))

    def resume(self, placed: PlacedPod) -> None:
        _, allocation = self._suspended.pop(placed.pod.uid)
        count_as(self._decider, placed, allocation)

    def equip(self, node: NodeName, inventory: Inventory) -> None:
        """Gives the node these devices."""
        self._equipped.add(node)
        self._decider.replace_inventory(node, self._fleet.told(inventory))

    def place(self, decision: Decision) -> None:
        """Counts devices, CPU and memory of a pending pod; its effect on other predicates is left out."""
        self._placed.append(decision.request.pod.uid)
        self._decider.take(decision.taken, decision.request.needs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for uid in self._placed:
            self._decider.give_back(uid)
        for node in self._equipped:
            self._decider.replace_inventory(node, self._fleet.told(self._fleet[node].inventory))
        for placed in tuple(self._away.values()):
            self.back(placed)
        for placed, _ in tuple(self._suspended.values()):
            self.resume(placed)
        self._take(self._over)

    def _give_back(self, held: Iterable[Allocation]) -> None:
        for each in held:
            self._decider.give_back(each.pod)

    def _take(self, held: Iterable[Allocation]) -> None:
        for each in held:
            self._decider.take(each, _NOTHING)
