"""A workload: the nodes of a fleet, and requests of which pods are made. Data, and how to make it by hand."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from partage_plugins.vocabulary import (
    GPU,
    Card,
    CardId,
    ContainerName,
    ContainerRequest,
    GpuPart,
    GpuRequest,
    Inventory,
    Namespace,
    NodeName,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    Ready,
    Room,
)

WHOLE_MILLI = 1000
GIB = 1 << 30
CARD_MEMORY_BYTES = 16 * GIB
"""Of cards of which only the model is known: a share takes the same fraction of it, so it never decides."""


class FleetNode(Struct, frozen=True):
    """A node, with nothing on it."""

    name: NodeName
    inventory: Inventory
    total: Room

    @property
    def cards(self) -> tuple[Card, ...]:
        """The cards that pods can be given."""
        part = self.inventory.part(GPU)
        return tuple(card for card in part.cards if card.is_allocatable) if part else ()


class Workload(Struct, frozen=True, kw_only=True):
    origin: str
    """For people: where it comes from."""
    nodes: tuple[FleetNode, ...]
    requests: tuple[PodRequest, ...]
    """One for each pod; whose it is, is replaced when it arrives."""

    @property
    def capacity_milli(self) -> int:
        return self.cards * WHOLE_MILLI

    @property
    def cards(self) -> int:
        """How many there are that pods can be given."""
        return sum(len(node.cards) for node in self.nodes)


def demand_milli(request: PodRequest) -> int:
    """How much of cards a pod asks for while its app containers run, or while an init container needs more."""
    running = highest = 0
    for container in request.containers:
        ask = container.of(GPU)
        asked = ask.count * ask.share_milli if ask else 0
        if container.role == "init":
            highest = max(highest, running + asked)
        else:
            running += asked
    return max(running, highest)


def node_of(number: int, name: str, total: Room, models: Iterable[str]) -> FleetNode:
    """A node with a card for each model; its number in the fleet makes the cards' ids, as names may be anything."""
    cards = tuple(
        Card(
            id=CardId(f"card-{number}-{index}"),
            index=index,
            model=model,
            memory_bytes=CARD_MEMORY_BYTES,
            compute_capability="9.0",
            pci=f"0000:{index:02x}:00.0",
            pool="shared",
        )
        for index, model in enumerate(models)
    )
    part = GpuPart(driver="-", cuda="-", cards=cards)
    ready = Ready(crishim=True, broker=True)
    return FleetNode(NodeName(name), Inventory(ready=ready, kinds={GPU.name: part}), total)


def request_of(needs: Room, ask: GpuRequest | None) -> PodRequest:
    """A pod of one container, or without devices."""
    container = ContainerName("main")
    asking = (ContainerRequest(name=container, role="app", asks=((GPU.name, ask),)),) if ask else ()
    return PodRequest(pod=pod_ref(0), containers=asking, needs=needs)


def pod_ref(number: int) -> PodRef:
    """The so-manyth pod that arrives."""
    name = f"pod-{number}"
    return PodRef(namespace=Namespace("simulated"), name=PodName(name), uid=PodUid(name))
