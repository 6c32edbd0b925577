"""A node's cards as devices of DRA: what of each may be consumed, what claims can choose by, and what is wrong. Pure.

Only cards of the pool `dra` are here, so that each card has one allocator. A card is one device of which claims take
what they name, or several fixed parts that draw on its counters. One that is degraded takes no new pods; one that is
lost ends those that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from partage_dra.parts import Cuts
from partage_plugins.rules.levels import card_levels
from partage_plugins.vocabulary.claim_devices import MEMORY, SHARE, device_name
from partage_plugins.vocabulary.gpu import MIB, Card, GpuPart
from partage_plugins.vocabulary.limits import WHOLE_MILLI

Effect = Literal["NoSchedule", "NoExecute"]
Attribute = bool | int | str
LONGEST_ATTRIBUTE: Final = 64
"""Of a text; the API server takes no more."""
PCI_ADDRESS: Final = "resource.kubernetes.io/pciBusID"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
"""By which claims match cards with devices of other drivers, such as network cards."""


class Capacity(Struct, frozen=True):
    """An amount that claims consume in steps; what is not asked for is all of it."""

    value: int
    least: int = 0
    step: int = 0
    """0: all of it is consumed."""


class Taint(Struct, frozen=True):
    """Why a device takes no new pods, or keeps none."""

    value: str
    effect: Effect


class Device(Struct, frozen=True, kw_only=True):
    name: str
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Capacity]
    taints: tuple[Taint, ...] = ()
    counters: str | None = None
    """It is a fixed part, and takes its capacity from these."""


class CounterSet(Struct, frozen=True):
    """What a card's parts have together."""

    name: str
    counters: Mapping[str, int]


def devices_of(
    part: GpuPart,
    cuts: Cuts = Cuts(),  # noqa: B008  immutable
    roots: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Device, ...]:
    """In the order of the cards; `roots` are the PCIe roots by PCI address, as far as they are known."""
    return tuple(_devices(part, cuts, roots))


def counters_of(part: GpuPart, cuts: Cuts) -> tuple[CounterSet, ...]:
    """Of the cards that are cut."""
    return tuple(
        CounterSet(device_name(card.id), {SHARE: WHOLE_MILLI, MEMORY: card.memory_bytes // MIB * MIB})
        for card in part.cards
        if card.pool == "dra" and cuts.of(card)
    )


def _devices(part: GpuPart, cuts: Cuts, roots: Mapping[str, str]) -> Iterator[Device]:
    levels = card_levels(part)
    for place, card in enumerate(part.cards):
        if card.pool != "dra":
            continue
        attributes = dict(_attributes(card, part, levels.nvlink[place], levels.pcie[place]))
        if (pcie_root := roots.get(card.pci)) is not None:
            attributes[PCIE_ROOT] = pcie_root
        whole, taints = card.memory_bytes // MIB * MIB, tuple(_taints(card))
        pieces = cuts.of(card)
        if not pieces:
            free = {SHARE: Capacity(WHOLE_MILLI, 0, 1), MEMORY: Capacity(whole, MIB, MIB)}
            yield Device(name=device_name(card.id), attributes=attributes, capacity=free, taints=taints)
        for piece in pieces:
            yield Device(
                name=piece.device(card.id),
                attributes={**attributes, "part": piece.kind},
                capacity={SHARE: Capacity(piece.share_milli), MEMORY: Capacity(piece.memory_bytes(card))},
                taints=taints,
                counters=device_name(card.id),
            )


def _attributes(card: Card, part: GpuPart, nvlink: int, pcie: int) -> Iterator[tuple[str, Attribute]]:
    """Groups have equal numbers within a node: cards of which every two have NVLinks, or that lie behind one switch."""
    yield "uuid", card.id[:LONGEST_ATTRIBUTE]
    yield "model", card.model[:LONGEST_ATTRIBUTE]
    yield "index", card.index
    yield "computeCapability", card.compute_capability
    yield "driver", part.driver[:LONGEST_ATTRIBUTE]
    yield "cuda", part.cuda[:LONGEST_ATTRIBUTE]
    yield PCI_ADDRESS, card.pci[:LONGEST_ATTRIBUTE]
    yield "nvlinkGroup", nvlink
    yield "pcieGroup", pcie
    if card.numa_node is not None:
        yield "numaNode", card.numa_node
    if card.mig_profile is not None:
        yield "mig", card.mig_profile[:LONGEST_ATTRIBUTE]
    if card.parent is not None:
        yield "parent", card.parent[:LONGEST_ATTRIBUTE]


def _taints(card: Card) -> Iterator[Taint]:
    if card.state != "ok":
        yield Taint(str(card.cause or card.state), "NoExecute" if card.is_lost else "NoSchedule")
