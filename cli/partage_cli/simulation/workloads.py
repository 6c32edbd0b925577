"""A workload: the nodes of a fleet and the requests of pods, with functions that build them by hand."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from partage_plugins.api import (
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
    Resources,
)

WHOLE_MILLI = 1000
GIB = 1 << 30
CARD_MEMORY_BYTES = 16 * GIB
"""Of cards with only a model. Requests without a size get the share's fraction, so memory never decides."""


class FleetNode(Struct, frozen=True):
    """A node with nothing on it."""

    name: NodeName
    inventory: Inventory
    total: Resources

    @property
    def cards(self) -> tuple[Card, ...]:
        """The allocatable cards."""
        part = self.inventory.part(GPU)
        return tuple(card for card in part.cards if card.is_allocatable) if part else ()


class Workload(Struct, frozen=True, kw_only=True):
    origin: str
    """The origin, for people."""
    nodes: tuple[FleetNode, ...]
    requests: tuple[PodRequest, ...]
    """One for each pod; its pod reference is replaced on arrival."""

    @property
    def capacity_milli(self) -> int:
        return self.cards * WHOLE_MILLI

    @property
    def cards(self) -> int:
        """Number of allocatable cards."""
        return sum(len(node.cards) for node in self.nodes)


def demand_milli(request: PodRequest) -> int:
    """A pod's peak demand for cards: of its app containers together, or of an init container that needs more."""
    running = highest = 0
    for container in request.containers:
        ask = container.of(GPU)
        asked = ask.count * ask.share_milli if ask else 0
        if container.role == "init":
            highest = max(highest, running + asked)
        else:
            running += asked
    return max(running, highest)


def node_of(number: int, name: str, total: Resources, models: Iterable[str]) -> FleetNode:
    """A node with a card for each model; the card ids use its number in the fleet, because names are arbitrary."""
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


def request_of(needs: Resources, ask: GpuRequest | None) -> PodRequest:
    """A pod of one container, or without devices."""
    container = ContainerName("main")
    asking = (ContainerRequest(name=container, role="app", asks=((GPU.name, ask),)),) if ask else ()
    return PodRequest(pod=pod_ref(0), containers=asking, needs=needs)


def pod_ref(number: int) -> PodRef:
    """The reference of the pod with this number."""
    name = f"pod-{number}"
    return PodRef(namespace=Namespace("simulated"), name=PodName(name), uid=PodUid(name))
