"""A small cluster of cards with the real allocator, without a host: nodes, pods and placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from partage_gpu.allocator import AllocatorSettings, GpuAllocator
from partage_gpu.allocator.mix import read_mix
from partage_gpu.allocator.shapes import Typical
from partage_plugins.api import (
    GPU,
    Allocation,
    Card,
    CardId,
    ContainerName,
    ContainerRequest,
    GpuGrant,
    GpuPart,
    GpuRequest,
    Inventory,
    Namespace,
    NodeName,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    Resources,
    Role,
    Slot,
)

GIB = 1 << 30


def card(name: str, *, gib: int = 16, **fields: Any) -> Card:
    """A card with that id: 16 GiB, healthy, in the pool `shared`."""
    usual: dict[str, Any] = {
        "index": 0,
        "model": "T4",
        "memory_bytes": gib * GIB,
        "compute_capability": "7.5",
        "pci": f"0000:{name}:00.0",
        "pool": "shared",
    }
    return Card(id=CardId(name), **(usual | fields))


def cards(prefix: str, number: int, **fields: Any) -> list[Card]:
    return [card(f"{prefix}{place}", **fields) for place in range(number)]


def ask(milli: int = 0, *, count: int = 1, gib: int | None = None, **fields: Any) -> GpuRequest:
    memory = None if gib is None else gib * GIB
    return GpuRequest(count=count, share_milli=milli, memory_bytes=memory, **fields)


def pod(
    *asks: GpuRequest, roles: Sequence[Role] = (), cpu_milli: int = 0, uid: str = "pod", names: Sequence[str] = ()
) -> PodRequest:
    """A pod with a container for each ask: `c0`, `c1`…; app containers by default."""
    containers = tuple(
        ContainerRequest(
            name=ContainerName(names[place] if names else f"c{place}"),
            role=roles[place] if roles else "app",
            asks=((GPU.name, each),),
        )
        for place, each in enumerate(asks)
    )
    ref = PodRef(namespace=Namespace("default"), name=PodName(uid), uid=PodUid(uid))
    return PodRequest(pod=ref, containers=containers, needs=Resources(cpu_milli=cpu_milli))


class Fleet:
    """Nodes with cards and pods; places each pod on the best node, the first of equal ones."""

    def __init__(
        self, *nodes: Sequence[Card], policy: str = "binpack", shapes: Typical | None = (), cpu_milli: int | None = None
    ) -> None:
        trusted = frozenset((Namespace("default"),))
        self.plugin = GpuAllocator(
            AllocatorSettings(mix=read_mix(policy), exclusion_namespaces=trusted, shapes=shapes or None)
        )
        self.nodes: dict[Slot, Inventory] = {}
        self.taken: dict[str, tuple[Slot, Allocation]] = {}
        self._numbers = count()
        for slot, of_node in enumerate(nodes):
            self.add(Slot(slot), of_node)
            if cpu_milli is not None:
                room = Resources(cpu_milli=cpu_milli)
                self.plugin.partage_node_room(Slot(slot), room, room)

    def add(self, slot: Slot, of_node: Sequence[Card], links: tuple[tuple[int, ...], ...] = ()) -> None:
        part = GpuPart(driver="580", cuda="13.0", cards=tuple(of_node), links=links)
        self.nodes[slot] = Inventory(kinds={GPU.name: part})
        self.plugin.partage_node_added(slot, self.nodes[slot])

    @property
    def slots(self) -> Any:
        return np.array(sorted(self.nodes), np.int32)

    def fitting(self, request: PodRequest) -> list[Slot]:
        return [Slot(slot) for slot in self.slots[self.plugin.partage_fits(request, self.slots).fits].tolist()]

    def why_not(self, request: PodRequest) -> list[str]:
        """The reason of each node on which it does not fit."""
        fits, codes, reasons = self.plugin.partage_fits(request, self.slots)
        codes = codes() if callable(codes) else codes
        return [str(reasons[code]) for code, fit in zip(codes.tolist(), fits.tolist(), strict=True) if not fit]

    def scores(self, request: PodRequest) -> list[float]:
        found: list[float] = self.plugin.partage_scores(request, self.slots).tolist()
        return found

    def allocation(self, request: PodRequest, slot: Slot) -> Allocation:
        grants = self.plugin.partage_allocate(request, slot)
        containers: Mapping[ContainerName, Any] = {name: {GPU.name: tuple(given)} for name, given in grants.items()}
        return Allocation(gen=1, pod=request.pod.uid, node=NodeName(f"n{slot}"), containers=containers)

    def best(self, request: PodRequest) -> Slot | None:
        fitting = self.fitting(request)
        if not fitting:
            return None
        scores = self.plugin.partage_scores(request, np.array(fitting, np.int32))
        return fitting[int(scores.argmax())]

    def place(self, request: PodRequest, name: str | None = None) -> list[str] | None:
        """Place the pod on the best node; returns its cards by container, or None if it fits nowhere."""
        slot = self.best(request)
        return None if slot is None else self.place_on(slot, request, name)

    def place_on(self, slot: Slot, request: PodRequest, name: str | None = None) -> list[str]:
        allocation = self.allocation(request, slot)
        self.take(slot, allocation, name)
        return granted(allocation)

    def take(self, slot: Slot, allocation: Allocation, name: str | None = None) -> None:
        self.taken[name or f"pod-{next(self._numbers)}"] = slot, allocation
        self.plugin.partage_take(slot, allocation)

    def give_back(self, name: str) -> None:
        slot, allocation = self.taken.pop(name)
        self.plugin.partage_give_back(slot, allocation)

    def state(self) -> dict[str, Any]:
        cluster = self.plugin.cluster
        arrays = ("share_left", "memory_left", "level", "holders", "walled")
        tags = {tag: dict(at) for tag, at in cluster.tags.carried.items()}
        return {name: getattr(cluster, name)[self.slots].tolist() for name in arrays} | {"tags": tags}


def granted(allocation: Allocation) -> list[str]:
    return [str(grant.card) for grants in allocation.of(GPU).values() for grant in grants]


def grants_of(allocation: Allocation) -> list[GpuGrant]:
    return [grant for grants in allocation.of(GPU).values() for grant in grants]
