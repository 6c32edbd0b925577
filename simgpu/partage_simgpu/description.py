"""Expands cards into node.conf, the file that describes a node to simgpud. Pure.

Everything that differs between the cards of a node is assigned here: addresses, ids, the nearer of two processors, and
links between cards. Ids are derived from the node's name and the card's position, so that tests can predict them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from partage_simgpu.errors import ProfileRefused
from partage_simgpu.mig import MEMORY_SLICES, Placed, placed
from partage_simgpu.profiles import Profile

DRIVER: Final = "580.95.05"
CUDA: Final = 13000
MOST_CARDS: Final = 32
"""Includes MIG instances."""
_ON_A_BOARD: Final = 8
"""Cards connected by one NVLink switch."""
_BEHIND_A_SWITCH: Final = 2
_ARCHITECTURES: Final = {"turing": 6, "ampere": 7, "ada": 8, "hopper": 9, "blackwell": 10}
"""NVML's architecture numbers."""
_CPUS: Final = ("0-31,64-95", "32-63,96-127")
"""CPUs of each of two sockets."""
_IDS: Final = uuid.UUID("6f1d5d3e-7f0a-5b7c-9a55-0d8f6f0c3a11")
_FIRST_BUS: Final = 0x18
_BUS_STEP: Final = 6


class Card(msgspec.Struct, frozen=True):
    """One card of a node."""

    profile: Profile
    mig: tuple[str, ...] = ()
    """Its MIG instances; empty: MIG is off."""


class Section(NamedTuple):
    """A section of the file: a card, or an instance of the preceding card."""

    kind: str
    fields: Mapping[str, str | int]


def card_uuid(node: str, ordinal: int) -> str:
    """Returns the UUID of a node's card; ordinals start at 0 and exclude MIG instances."""
    return f"GPU-{uuid.uuid5(_IDS, f'{node}/{ordinal}')}"


def mig_uuid(node: str, ordinal: int, gpu_instance: int) -> str:
    """Returns the UUID of an instance on that card."""
    return f"MIG-{uuid.uuid5(_IDS, f'{node}/{ordinal}/{gpu_instance}')}"


def described(node: str, cards: Sequence[Card]) -> list[Section]:
    """Returns the cards and their instances in index order."""
    instances = [placed(card.profile, card.mig) for card in cards]
    total = len(cards) + sum(len(found) for found in instances)
    if not 0 < len(cards) <= total <= MOST_CARDS:
        raise ProfileRefused(f"a node has 1 to {MOST_CARDS} cards and MIG instances together, not {total}")
    indices = _indices(instances)
    sections: list[Section] = []
    for ordinal, (card, found) in enumerate(zip(cards, instances, strict=True)):
        whole = _card(node, ordinal, card, len(cards)) | _links(ordinal, cards, indices)
        sections.append(Section("card", whole))
        sections += [Section("mig", _instance(node, ordinal, card.profile, one)) for one in found]
    return sections


def as_text(sections: Iterable[Section], *, driver: str = DRIVER, cuda: int = CUDA) -> str:
    lines = ["# What this simulated node is. simgpud reads it when it starts.", f"driver = {driver}", f"cuda = {cuda}"]
    for section in sections:
        lines += ["", f"[{section.kind}]", *(f"{key} = {value}" for key, value in section.fields.items())]
    return "\n".join(lines) + "\n"


def sections_of(text: str) -> list[Section]:
    """Parses such a file into cards and instances, with every value as text."""
    found: list[tuple[str, dict[str, str | int]]] = []
    for line in (line.partition("#")[0].strip() for line in text.splitlines()):
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif found and "=" in line:
            key, _, value = line.partition("=")
            found[-1][1][key.strip()] = value.strip()
    return [Section(kind, fields) for kind, fields in found]


def _card(node: str, ordinal: int, card: Card, count: int) -> dict[str, str | int]:
    profile = card.profile
    first_far = (count + 1) // 2
    near, bus = int(ordinal >= first_far), _FIRST_BUS + _BUS_STEP * ordinal
    return {
        "name": profile.name,
        "uuid": card_uuid(node, ordinal),
        "serial": _serial(node, ordinal),
        "board": profile.board,
        "pci": f"0000:{bus:02x}:00.0",
        "domain": 0,
        "bus": bus,
        "device": 0,
        "minor": ordinal,
        **_kind(profile),
        "numa": near,
        "pcie_switch": near * MOST_CARDS + (ordinal - near * first_far) // _BEHIND_A_SWITCH,
        "cpus": _CPUS[near],
        "mig_capable": int(bool(profile.mig)),
        "mig_enabled": int(bool(card.mig)),
    }


def _kind(profile: Profile) -> dict[str, str | int]:
    """Fields common to all cards of a profile."""
    major, _, minor = profile.compute.partition(".")
    return {
        "pci_device_id": f"0x{profile.pci_device_id:08x}",
        "pci_subsystem_id": f"0x{profile.pci_subsystem_id:08x}",
        "architecture": _ARCHITECTURES[profile.architecture],
        "cc_major": int(major),
        "cc_minor": int(minor),
        "sms": profile.sms,
        "threads_per_sm": profile.threads_per_sm,
        "sm_clock_mhz": profile.sm_clock_mhz,
        "memory_clock_mhz": profile.memory_clock_mhz,
        "bus_width_bits": profile.bus_width_bits,
        "power_limit_mw": profile.power_limit_w * 1000,
        "power_idle_mw": profile.power_idle_w * 1000,
        "temperature_c": profile.temperature_c,
        "ecc": int(profile.ecc),
        "memory": f"{profile.memory_mib} MiB",
        "reserved": f"{profile.reserved_mib} MiB",
        "context": f"{profile.context_mib} MiB",
        "module": f"{profile.module_mib} MiB",
        "graph_node": f"{profile.graph_node_kib} KiB",
        "memory_rate": profile.memory_gb_per_s * 10**9,
        "bus_rate": profile.bus_gb_per_s * 10**9,
        "fault_rate": profile.managed.fault_gb_per_s * 10**9 if profile.managed else 0,
        "evict_rate": profile.managed.evict_gb_per_s * 10**9 if profile.managed else 0,
    }


def _instance(node: str, ordinal: int, profile: Profile, instance: Placed) -> dict[str, str | int]:
    """Fields in which an instance differs from its card."""
    kind = instance.profile
    return {
        "name": f"{profile.name} MIG {instance.name}",
        "uuid": mig_uuid(node, ordinal, instance.gpu_instance),
        "sms": kind.sms,
        "memory": f"{kind.memory_mib} MiB",
        "memory_rate": profile.memory_gb_per_s * 10**9 * kind.placements.size // MEMORY_SLICES,
        "gpu_instance": instance.gpu_instance,
        "compute_instance": 0,
        "mig_slices": kind.slices,
        "mig_profile": instance.name,
    }


def _links(ordinal: int, cards: Sequence[Card], indices: Sequence[int]) -> dict[str, str | int]:
    """Distributes a card's links over the other cards of its board's switch in turn. MIG disables NVLink."""
    nvlink = cards[ordinal].profile.nvlink
    board = range(ordinal - ordinal % _ON_A_BOARD, min(len(cards), ordinal - ordinal % _ON_A_BOARD + _ON_A_BOARD))
    others = [
        indices[other]
        for other in board
        if other != ordinal and cards[other].profile.nvlink == nvlink and not cards[other].mig
    ]
    if nvlink is None or cards[ordinal].mig or not others:
        return {"nvlinks": 0, "nvlink_version": 0}
    ends = [others[link % len(others)] for link in range(nvlink.links)]
    return {
        "nvlinks": nvlink.links,
        "nvlink_version": nvlink.version,
        "link_to": " ".join(map(str, ends)),
    }


def _indices(instances: Sequence[Sequence[Placed]]) -> list[int]:
    """The index of each card among cards and instances."""
    return [ordinal + sum(map(len, instances[:ordinal])) for ordinal in range(len(instances))]


def _serial(node: str, ordinal: int) -> str:
    # Thirteen digits, like NVIDIA's serial numbers.
    return f"{int(hashlib.sha256(f'{node}/{ordinal}'.encode()).hexdigest(), 16) % 10**13:013d}"
