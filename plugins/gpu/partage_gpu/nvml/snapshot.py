"""A full look at all cards: all facts about them. Used only in the child process.

A card that fails never hides the others: it becomes a silent one, with NVML's error text. Only an error that concerns
the node, such as the number of cards, ends the look, and with it this process: an NVML session that has lost its driver
does not recover.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml.calls import Handle, Memory, NvmlError, optional
from partage_gpu.nvml.facts import CardFacts, InstanceFacts, NodeFacts, Sample, SilentCard
from partage_gpu.nvml.signs import Condition, condition_of


class _Card(NamedTuple):
    """The facts that are constant while a card's signs are, and the ends of its links."""

    facts: CardFacts
    handle: Handle
    ends: tuple[str | None, ...]


class Snapshot:
    def __init__(self, driver_root: str) -> None:
        self._driver_root = driver_root
        self._known: dict[str, _Card] = {}
        self._switches: dict[str, int] = {}
        """By card, for those in the last look."""
        self.signs_changed = False
        """Set when signs change, in any thread. A card's constant facts take some hundred calls and are cached."""

    def facts(self) -> NodeFacts:
        if self.signs_changed:
            self.signs_changed = False
            self._known.clear()
            self._switches.clear()
        driver, cuda = nvml.of_node(nvml.driver_version), nvml.of_node(nvml.cuda_version)
        looked = [self._looked(index) for index in range(nvml.of_node(nvml.count))]
        cards = [one for one in looked if isinstance(one, CardFacts)]
        silent = tuple(one for one in looked if isinstance(one, SilentCard))
        links = links_between({card.uuid: LinkedCard(card.pci, self._known[card.uuid].ends) for card in cards})
        if self._switches.keys() != {card.uuid for card in cards}:
            self._switches = _switches({card.uuid: self._known[card.uuid].handle for card in cards})
        linked = tuple(replace(card, links=links[card.uuid], figures=self._figures(card)) for card in cards)
        return NodeFacts(driver=driver, cuda=cuda, cards=linked, silent=silent)

    def _figures(self, card: CardFacts) -> dict[str, int]:
        return {**card.figures, "pcie_switch": self._switches[card.uuid]}

    def _looked(self, index: int) -> CardFacts | SilentCard:
        uuid = None
        try:
            handle = nvml.card(index)
            uuid = nvml.uuid(handle)
            if uuid not in self._known:
                ends = tuple(end.pci for end in optional(nvml.link_ends, handle) or ())
                self._known[uuid] = _Card(_what_is(handle, uuid, self._driver_root), handle, ends)
            return _how_is(handle, index, self._known[uuid].facts)
        except NvmlError as refused:
            return SilentCard(index=index, uuid=uuid, fault=str(refused))


def _switches(cards: Mapping[str, Handle]) -> dict[str, int]:
    """By card, the index of the first card behind the same switch; a card without that information is alone."""
    handles, found = list(cards.values()), dict[str, int]()
    for place, (uuid, handle) in enumerate(cards.items()):
        near = (first for first in sorted(set(found.values())) if _are_near(handles[first], handle))
        found[uuid] = next(near, place)
    return found


def _are_near(one: Handle, other: Handle) -> bool:
    try:
        return nvml.are_behind_one_switch(one, other)
    except NvmlError:  # a failing card is silent in the next look, which queries all again
        return False


def _what_is(handle: Handle, uuid: str, driver_root: str) -> CardFacts:
    memory, pci = _own_memory(handle), nvml.pci(handle)
    numa_node = optional(nvml.numa_node, handle)
    figures = {
        "numa_node": numa_node_of(driver_root, pci) if numa_node is None else numa_node,
        "pcie_generation": optional(nvml.pcie_generation, handle),
    }
    return CardFacts(
        uuid=uuid,
        index=0,
        minor=optional(nvml.minor, handle),
        model=nvml.name(handle),
        memory_bytes=host_memory_bytes() if memory is None else memory.total,
        reserved_bytes=0 if memory is None else memory.reserved,
        has_own_memory=memory is not None,
        compute_capability=nvml.capability(handle),
        pci=pci,
        figures={name: figure for name, figure in figures.items() if figure is not None},
    )


def _own_memory(handle: Handle) -> Memory | None:
    """None: it has none, and uses the host's."""
    try:
        return nvml.memory(handle)
    except NvmlError as refused:
        if refused.number == nvml.NOT_SUPPORTED:
            return None
        raise


def _how_is(handle: Handle, index: int, card: CardFacts) -> CardFacts:
    condition, is_mig = optional(condition_of, handle) or Condition(), bool(optional(nvml.is_mig, handle))
    return replace(
        card,
        index=index,
        is_mig=is_mig,
        instances=_instances(handle) if is_mig else (),
        tells_use=optional(nvml.tells_use, handle) if card.has_own_memory else False,
        ecc_uncorrected=condition.ecc_uncorrected,
        row_remap_failed=condition.row_remap_failed,
        needs_reset=condition.needs_reset,
    )


def _instances(handle: Handle) -> tuple[InstanceFacts, ...]:
    """The instances that answer: one that is being destroyed does not."""
    found = (optional(_instance, one) for one in optional(nvml.instances, handle) or ())
    return tuple(one for one in found if one is not None)


def _instance(handle: Handle) -> InstanceFacts:
    memory = nvml.memory(handle)
    return InstanceFacts(
        uuid=nvml.uuid(handle),
        profile=profile_of(nvml.name(handle), optional(nvml.slices, handle)),
        memory_bytes=memory.total,
        used_bytes=memory.used,
    )


def samples() -> tuple[Sample, ...]:
    """Measurements of every card that answers; of its MIG instances only the memory, which NVML reports."""
    return tuple(sample for index in range(nvml.count()) for sample in _of_card(index))


def _of_card(index: int) -> Iterator[Sample]:
    try:
        card = nvml.card(index)
        yield _of_whole(card)
        if optional(nvml.is_mig, card):
            found = (optional(_of_instance, one) for one in optional(nvml.instances, card) or ())
            yield from (one for one in found if one is not None)
    except NvmlError:  # the next look reports a silent card
        return


def _of_whole(card: Handle) -> Sample:
    memory = optional(nvml.memory, card)
    return Sample(
        uuid=nvml.uuid(card),
        model=nvml.name(card),
        used_bytes=memory and memory.used,
        total_bytes=memory and memory.total,
        utilisation=optional(nvml.utilisation, card),
        temperature_celsius=optional(nvml.temperature, card),
        power_watts=optional(nvml.power, card),
    )


def _of_instance(instance: Handle) -> Sample:
    memory = optional(nvml.memory, instance)
    return Sample(
        uuid=nvml.uuid(instance),
        model=nvml.name(instance),
        used_bytes=memory and memory.used,
        total_bytes=memory and memory.total,
    )


def numa_node_of(driver_root: str, pci: str) -> int | None:
    """The nearest NUMA node; None on machines with only one."""
    path = os.path.join(driver_root, "sys/bus/pci/devices", pci, "numa_node")  # noqa: PTH118  pathlib is memory
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            node = int(file.read())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def host_memory_bytes() -> int:
    """The machine's total memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


_BEHIND: Final = re.compile(r" MIG (?P<profile>(\d+c\.)?\d+g\.\d+gb\S*)", re.ASCII)
_MIB_IN_GIB: Final = 1024


def profile_of(name: str, slices: tuple[int, int, int] | None) -> str:
    """The profile in NVIDIA's notation: `1g.10gb`, `1c.3g.40gb`. NVML appends it to the name; older drivers do not.

    `slices`: for compute, in all, and memory in MiB.
    """
    written = _BEHIND.search(name)
    if written is not None:
        return written["profile"]
    if slices is None:
        return "unknown"
    compute, total, memory_mib = slices
    profile = f"{total}g.{-(-memory_mib // _MIB_IN_GIB)}gb"
    return profile if compute == total else f"{compute}c.{profile}"


class LinkedCard(NamedTuple):
    """A card and the addresses at which its links end; None for a switch."""

    pci: str
    ends: Sequence[str | None]


def links_between(cards: Mapping[str, LinkedCard]) -> dict[str, dict[str, int]]:
    """For each card, by uuid, the number of links to each other one."""
    uuids = {card.pci: uuid for uuid, card in cards.items()}
    found: dict[str, dict[str, int]] = {}
    for uuid, card in cards.items():
        direct = Counter(uuids[end] for end in card.ends if end in uuids)
        switched = {other: _through_switch(card, cards[other]) for other in cards}
        counts = {other: direct[other] + switched[other] for other in cards if other != uuid}
        found[uuid] = {other: count for other, count in counts.items() if count}
    return found


def _through_switch(one: LinkedCard, other: LinkedCard) -> int:
    return min(one.ends.count(None), other.ends.count(None))
