"""A transparent plugin: a node has a pile of things, a pod takes some. Also the deciders with this plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partage_plugins import Refused, hookimpl
from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.api import (
    Allocation,
    ContainerName,
    ContainerRequest,
    Inventory,
    Namespace,
    NodeName,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    Resources,
    Slot,
)
from partage_scheduler.core import decider_over
from partage_scheduler.decision import Decider
from support.sides import MAIN, THING, Ask, Thing, Things, load_scheduler

TOO_FEW = "too few things"
GIB = 1 << 30
ROOM = Resources(cpu_milli=8000, memory_bytes=8 * GIB)


def count_of(request: PodRequest) -> int:
    return sum(ask.count for ask in request.of(THING).values())


def liking(free: int, cpu_milli: int, count: int) -> int:
    """A node's score: the smaller the rest the better, plus a little for CPU; equal for many nodes."""
    return 10 * (20 - (free - count)) + cpu_milli // 1000 % 3


class Shapeless:
    """Owns the kind `thing`, and omits the hook that lets the core cache results."""

    def __init__(self) -> None:
        self.free: dict[int, list[str]] = {}
        self.cpu_milli: dict[int, int] = {}
        self.asked: list[tuple[int, ...]] = []

    @hookimpl
    def partage_kind(self) -> object:
        return THING

    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        part = inventory.part(THING)
        self.free[slot] = list(part.ids) if part else []

    @hookimpl
    def partage_node_removed(self, slot: Slot) -> None:
        del self.free[slot]
        self.cpu_milli.pop(slot, None)

    @hookimpl
    def partage_node_room(self, slot: Slot, free: Resources) -> None:
        self.cpu_milli[slot] = free.cpu_milli

    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        self.asked.append(tuple(slots.tolist()))
        fits = np.array([len(self.free[slot]) >= count_of(request) for slot in slots.tolist()], dtype=np.bool_)
        return Fits(fits, np.zeros(slots.shape, dtype=np.uint8), (TOO_FEW,))

    @hookimpl
    def partage_scores(self, request: PodRequest, slots: Slots) -> Scores:
        count = count_of(request)
        liked = [liking(len(self.free[slot]), self.cpu_milli[slot], count) for slot in slots.tolist()]
        return np.array(liked, dtype=np.float32)

    @hookimpl
    def partage_allocate(self, request: PodRequest, slot: Slot) -> Mapping[ContainerName, Sequence[Thing]]:
        if len(self.free[slot]) < count_of(request):
            raise Refused(TOO_FEW)
        return {name: tuple(Thing(each) for each in self.free[slot][: ask.count]) for name, ask in asks(request)}

    @hookimpl
    def partage_take(self, slot: Slot, allocation: Allocation) -> None:
        for thing in things(allocation):
            self.free[slot].remove(thing)

    @hookimpl
    def partage_give_back(self, slot: Slot, allocation: Allocation) -> None:
        self.free[slot] = sorted(self.free[slot] + things(allocation))


class Piles(Shapeless):
    @hookimpl
    def partage_shape(self, request: PodRequest) -> int:
        return count_of(request)


def asks(request: PodRequest) -> list[tuple[ContainerName, Ask]]:
    return list(request.of(THING).items())


def things(allocation: Allocation) -> list[str]:
    return [thing.id for grants in allocation.of(THING).values() for thing in grants]


def pile(size: int) -> Inventory:
    return Inventory(kinds={THING.name: Things(tuple(f"t{number}" for number in range(size)))})


def wanting(count: int, *, cpu_milli: int = 0, memory_bytes: int = 0, pod: str = "p") -> PodRequest:
    """A pod that requests `count` things; 0 is a pod without devices."""
    asking = ContainerRequest(name=MAIN, role="app", asks=((THING.name, Ask(count)),))
    return PodRequest(
        pod=PodRef(namespace=Namespace("default"), name=PodName(pod), uid=PodUid(pod)),
        containers=(asking,) if count else (),
        needs=Resources(cpu_milli=cpu_milli, memory_bytes=memory_bytes),
    )


class World:
    """A decider with one plugin, and shorthands for tests."""

    def __init__(self, plugin: type[Any] = Piles, /, **piles: int) -> None:
        registry, report = load_scheduler(piles=plugin)
        assert not report.faults
        self.renewals: list[str] = []
        self.decider, self.framework = decider_over(registry, on_renewed=lambda why: self.renewals.append(str(why)))
        self.registry = registry
        for name, size in piles.items():
            self.add(name, size)

    @property
    def plugin(self) -> Any:
        return self.registry.implementations("partage_fits")[0].plugin

    def add(self, name: str, size: int, room: Resources = ROOM) -> None:
        self.decider.add_node(NodeName(name), pile(size), room)

    def place(self, request: PodRequest) -> str | None:
        """Decide and take; return the node."""
        decision = self.decider.decide(request)
        if decision is None:
            return None
        self.decider.take(decision.allocation, request.needs)
        return decision.node


def node_of(decider: Decider, request: PodRequest) -> str | None:
    decision = decider.decide(request)
    return None if decision is None else decision.node
