"""A node's cards as DRA devices: their capacity, the attributes that claims select by, and their taints. Pure.

Only cards of the pool `dra` are included, so that each card has one allocator. A card is either one device with
consumable capacity, or several fixed parts that draw on its counters. A degraded device takes no new pods; a lost one
evicts the pods that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

from partage_dra.parts import Cuts
from partage_plugins.api.claim_devices import MEMORY, SHARE, device_name
from partage_plugins.api.gpu import MIB, Card, GpuPart
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.rules.levels import card_levels

Effect = Literal["NoSchedule", "NoExecute"]
Attribute = bool | int | str
LONGEST_ATTRIBUTE: Final = 64
"""The API server's limit for a string."""
PCI_ADDRESS: Final = "resource.kubernetes.io/pciBusID"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
"""Lets claims match cards with devices of other drivers, such as network cards."""


class Capacity(Struct, frozen=True):
    """An amount that claims consume in steps; a claim without an amount gets all of it."""

    value: int
    least: int = 0
    step: int = 0
    """0: only all of it can be consumed."""


class Taint(Struct, frozen=True):
    """Why a device takes no new pods, or evicts its pods."""

    value: str
    effect: Effect


class Device(Struct, frozen=True, kw_only=True):
    name: str
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Capacity]
    taints: tuple[Taint, ...] = ()
    counters: str | None = None
    """For a fixed part, the counter set that it takes its capacity from."""


class CounterSet(Struct, frozen=True):
    """The counters that a card's parts share."""

    name: str
    counters: Mapping[str, int]


def devices_of(
    part: GpuPart,
    cuts: Cuts = Cuts(),  # noqa: B008  immutable
    roots: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Device, ...]:
    """Devices in the order of the cards; `roots` are the known PCIe roots by PCI address."""
    return tuple(_devices(part, cuts, roots))


def counters_of(part: GpuPart, cuts: Cuts) -> tuple[CounterSet, ...]:
    """Counter sets of the cards that are handed out in parts."""
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
    """Groups are numbered within a node: cards with NVLinks between every two, or cards behind one switch."""
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
