"""Owners that grant wrongly, or miscount."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from partage_fpga_template.kind import FPGA, FpgaGrant
from partage_fpga_template.scheduler import FpgaScheduler
from partage_plugins import hookimpl
from partage_plugins.api import Allocation, ContainerName, Inventory, Kind, PodRequest, Resources, Slot, grantee_of

Grants = Mapping[ContainerName, Sequence[FpgaGrant]]


class FitsButRefuses(FpgaScheduler):
    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        return None if self._free[slot] else "not enough free FPGA boards"

    def score(self, request: PodRequest, slot: Slot) -> float:
        return 0.5


class AllocatesWithState(FpgaScheduler):
    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Grants:
        granted = super().partage_allocate(request, slot)
        self._free[slot] -= {grant.board for grants in granted.values() for grant in grants}
        return granted


class GrantsToTheFirstOnly(FpgaScheduler):
    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Grants:
        granted = super().partage_allocate(request, slot)
        return dict(list(granted.items())[:1])


class GrantsWithoutLooking(FpgaScheduler):
    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Grants:
        return {name: [FpgaGrant("fpga0")] for name in request.of(FPGA)}


class TakesNothing(FpgaScheduler):
    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None: ...


class CrashesInTake(FpgaScheduler):
    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        ctypes.string_at(0)


class ForgetsGiveBack(FpgaScheduler):
    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Allocation) -> None: ...


class GivesBackTheLastOnly(FpgaScheduler):
    """Correct only if grants are released in reverse order."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: list[tuple[Slot, set[str]]] = []

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        before = set(self._free[slot])
        super().partage_take(slot, allocation)
        self._taken.append((slot, before))

    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Allocation) -> None:
        last, before = self._taken.pop()
        self._free[last] = before


class KeepsRemovedNodes(FpgaScheduler):
    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        if slot not in self._free:
            super().partage_node_added(slot, inventory)

    @hookimpl
    def partage_node_removed(self, slot: Slot) -> None: ...


class _KnowsRooms(FpgaScheduler):
    def __init__(self) -> None:
        super().__init__()
        self._rooms: dict[Slot, Resources] = {}

    @hookimpl
    def partage_node_room(self, slot: Slot, free: Resources) -> None:
        self._rooms[slot] = free


class VetoesByRoom(_KnowsRooms):
    """Does the host's work, though the host knows more about CPU."""

    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        free = self._rooms.get(slot)
        return "not enough CPU" if free and not free.cpu_milli else super().why_not(request, slot)


class LosesCountOfRooms(FpgaScheduler):
    """Resets a node's accounts when it receives the node's room."""

    def __init__(self) -> None:
        super().__init__()
        self._all: dict[Slot, set[str]] = {}

    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        super().partage_node_added(slot, inventory)
        self._all[slot] = set(self._free[slot])

    @hookimpl
    def partage_node_room(self, slot: Slot) -> None:
        self._free[slot] = set(self._all[slot])


class KeepsRoomsOfRemovedNodes(_KnowsRooms):
    """Scores a new node in the slot by the old node's CPU."""

    def score(self, request: PodRequest, slot: Slot) -> float:
        return super().score(request, slot) + (slot in self._rooms)


class SharesItsState(FpgaScheduler):
    """Keeps its state on the class, so that a new instance inherits it."""

    shared: ClassVar[dict[Slot, set[str]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._free = self.shared


class CountsAllKinds(FpgaScheduler):
    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        for grants in allocation.containers.values():
            mine: Any = grants.get(Kind("fpga"), ())
            others: Any = [grant for kind, held in grants.items() if kind != "fpga" for grant in held]  # type: ignore[attr-defined]
            self._free[slot] -= {grant.board for grant in mine}
            self._free[slot] = set(sorted(self._free[slot])[len(others) :])


class CountsEachUseOfABudget(FpgaScheduler):
    """Takes boards for each container that uses a budget, as if each had its own grant."""

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        super().partage_take(slot, allocation)
        granted = sum(len(grants) for grants in allocation.of(FPGA).values())
        more = granted * max(0, len(allocation.uses) - 1)
        self._free[slot] = set(sorted(self._free[slot])[more:])


class GrantsToEachUserOfABudget(FpgaScheduler):
    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Grants:
        granted = super().partage_allocate(request, slot)
        return {use.container: granted[grantee_of(use.budget)] for use in request.uses} or granted
