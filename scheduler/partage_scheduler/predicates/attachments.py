"""Volume limits: how many volumes of each CSI driver a node can attach (`CSINode`), and which ones its pods use.

A node that publishes no limit can attach any number. A claim that is bound only after its pod was counted is counted
then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Flags
from partage_plugins.api.reasons import Reason
from partage_scheduler.decision import FilteredNodes
from partage_scheduler.decision.slots import grown
from partage_scheduler.objects import ApiCsiNode
from partage_scheduler.predicates.counters import Counter
from partage_scheduler.predicates.memo import Memo
from partage_scheduler.predicates.nodes import Nodes
from partage_scheduler.predicates.storage import ClaimKey, Storage

TOO_MANY: Final = Reason("too-many-volumes", "node(s) exceed max volume count")
_ANY_NUMBER: Final = np.iinfo(np.int64).max


class Handle(NamedTuple):
    """A volume as its CSI driver identifies it."""

    driver: str
    volume: str


class _User(NamedTuple):
    slot: int
    claims: tuple[ClaimKey, ...]
    handles: tuple[Handle, ...]


class Attached:
    def __init__(self, nodes: Nodes, storage: Storage) -> None:
        self._nodes, self._storage = nodes, storage
        self._csi: dict[str, ApiCsiNode] = {}
        self._most = Memo[NDArray[np.int64]](nodes)
        self._users: dict[str, _User] = {}
        self._by_claim: dict[ClaimKey, dict[str, None]] = {}
        self._where: dict[Handle, Counter] = {}
        self._number: dict[str, NDArray[np.int64]] = {}

    def put_node(self, node: ApiCsiNode) -> None:
        if self._csi.get(node.name) != node:
            self._csi[node.name] = node
            self._most.forget()

    def remove_node(self, name: str) -> None:
        if self._csi.pop(name, None) is not None:
            self._most.forget()

    def take(self, slot: int, uid: str, claims: tuple[ClaimKey, ...]) -> None:
        if not claims:
            return
        self._users[uid] = user = _User(slot, claims, self._handles(claims))
        for key in claims:
            self._by_claim.setdefault(key, {})[uid] = None
        for handle in user.handles:
            self._add(slot, handle, 1)

    def give_back(self, uid: str) -> None:
        user = self._users.pop(uid, None)
        if user is None:
            return
        for key in user.claims:
            del self._by_claim[key][uid]
            if not self._by_claim[key]:
                del self._by_claim[key]
        for handle in user.handles:
            self._add(user.slot, handle, -1)

    def changed(self, key: ClaimKey) -> None:
        """Recounts the pods that use a claim after the claim, or its volume, changed."""
        for uid in tuple(self._by_claim.get(key, ())):
            user = self._users[uid]
            self.give_back(uid)
            self.take(user.slot, uid, user.claims)

    def barred(self, claims: Iterable[ClaimKey], end: int) -> list[FilteredNodes]:
        if not self._csi:
            return []
        handles = self._handles(claims)
        flags = np.zeros(end, dtype=np.bool_)
        for driver in {handle.driver for handle in handles}:
            flags |= self._too_many(driver, [each for each in handles if each.driver == driver], end)
        return [FilteredNodes(TOO_MANY, flags)] if flags.any() else []

    def _too_many(self, driver: str, handles: list[Handle], end: int) -> Flags:
        more = np.full(end, len(handles), dtype=np.int64)
        for handle in handles:
            if handle in self._where:
                more -= self._where[handle].flags(end)
        number = grown(self._number.get(driver, np.zeros(0, dtype=np.int64)), end, 0)[:end]
        most = self._most.of(driver, lambda: self._most_of(driver))[:end]
        return (more > 0) & (number + more > most)

    def _most_of(self, driver: str) -> NDArray[np.int64]:
        most = np.full(self._nodes.end, _ANY_NUMBER, dtype=np.int64)
        for name, node in self._csi.items():
            slot = self._nodes.slot(name)
            for each in node.spec.drivers or ():
                count = each.allocatable.count if each.allocatable is not None else None
                if slot is not None and each.name == driver and count is not None:
                    most[slot] = count
        return most

    def _handles(self, claims: Iterable[ClaimKey]) -> tuple[Handle, ...]:
        found: dict[Handle, None] = {}
        for key in claims:
            volume = self._storage.volume_of(key)
            if volume is not None and volume.spec.csi is not None:
                found[Handle(volume.spec.csi.driver, volume.spec.csi.volume_handle)] = None
        return tuple(found)

    def _add(self, slot: int, handle: Handle, number: int) -> None:
        """Counts a volume once on a node, however many of the node's pods use it."""
        counter = self._where.setdefault(handle, Counter())
        before = counter.at(slot)
        counter.add(slot, number)
        change = bool(counter.at(slot)) - bool(before)
        if change:
            of_driver = grown(self._number.get(handle.driver, np.zeros(0, dtype=np.int64)), slot + 1, 0)
            of_driver[slot] += change
            self._number[handle.driver] = of_driver
        if not counter:
            del self._where[handle]
