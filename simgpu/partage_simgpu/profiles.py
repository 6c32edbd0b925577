"""Card profiles, built-in and custom: each is a small TOML file, parsed into a type.

The number of a node's cards, their positions and links are not part of a profile; see `description`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from partage_simgpu.build import sources
from partage_simgpu.errors import ProfileRefused

Architecture: TypeAlias = Literal["turing", "ampere", "ada", "hopper", "blackwell"]
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 31)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
_MOST_LINKS: Final = 18
_SUFFIX: Final = ".toml"
_PRINTABLE: Final = r"^[!\"$-~]([ -\"$-~]*[!\"$-~])?\Z"
"""ASCII without the comment sign."""


class Placements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory slices at which an instance may begin, and how many it takes."""

    starts: tuple[Count, ...]
    size: Positive


class MigProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of MIG instance."""

    slices: Positive
    memory_mib: Positive
    sms: Positive
    placements: Placements


class NvLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """NVLinks of the cards of one board, which are all connected through a switch."""

    version: Positive
    links: Annotated[int, msgspec.Meta(ge=1, le=_MOST_LINKS)]


class Managed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paging rates of managed memory."""

    fault_gb_per_s: Positive
    """To the card, by faults of kernels."""
    evict_gb_per_s: Positive
    """To the host, to make room."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Properties of a card, except for its position. Fields with defaults are optional."""

    name: Annotated[str, msgspec.Meta(max_length=80, pattern=_PRINTABLE)]
    """As reported by NVML."""
    memory_mib: Positive
    """Total memory, as nvidia-smi shows it."""
    reserved_mib: Count = 0
    """The part of it reserved by the driver."""
    context_mib: Positive = 256
    """Memory taken by a process's first context."""
    module_mib: Count = 2
    """Memory taken by the first launch from a module."""
    graph_node_kib: Count = 32
    """Memory taken by each node of an instantiated graph."""
    architecture: Architecture = "hopper"
    compute: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,2}\.[0-9]\Z")] = "9.0"
    sms: Positive = 16
    threads_per_sm: Positive = 2048
    sm_clock_mhz: Positive = 1500
    memory_clock_mhz: Positive = 1500
    bus_width_bits: Positive = 256
    power_limit_w: Positive = 300
    power_idle_w: Positive = 30
    temperature_c: Positive = 30
    ecc: bool = False
    memory_gb_per_s: Positive = 1000
    """Rate of copies within the card."""
    bus_gb_per_s: Positive = 25
    """Rate of copies to and from the host."""
    managed: Managed | None = None
    """None: managed memory stays on the card like any other memory, and a full card refuses it."""
    pci_device_id: Count = 0x233010DE
    pci_subsystem_id: Count = 0
    board: Annotated[str, msgspec.Meta(max_length=31, pattern=r"^[ -\"$-~]*\Z")] = ""
    """The part number of the board."""
    nvlink: NvLink | None = None
    mig: Mapping[Annotated[str, msgspec.Meta(pattern=r"^[0-9]g\.[0-9]{1,3}gb\Z")], MigProfile] = {}


def profile_names() -> list[str]:
    """Returns the names of the profiles included in partage."""
    return sorted(file.stem for file in _folder().glob(f"*{_SUFFIX}"))


def load_profile(name: str) -> Profile:
    """Loads a profile included in partage."""
    if name not in profile_names():
        raise ProfileRefused(f"there is no card {name}; there is {', '.join(profile_names())}, or give a file")
    return read_profile(_folder() / f"{name}{_SUFFIX}")


def read_profile(file: Path) -> Profile:
    try:
        profile = msgspec.toml.decode(file.read_bytes(), type=Profile)
    except OSError as error:
        raise ProfileRefused(f"{file}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileRefused(f"{file}: {error}") from error
    _require_room(profile, file)
    return profile


def _require_room(profile: Profile, file: Path) -> None:
    if profile.reserved_mib + profile.context_mib > profile.memory_mib:
        raise ProfileRefused(f"{file}: reserved_mib and context_mib are more than memory_mib; nothing could run")
    for name, instance in profile.mig.items():
        if instance.memory_mib > profile.memory_mib or instance.sms > profile.sms:
            raise ProfileRefused(f"{file}: mig {name}: is more than its card has; lower memory_mib or sms")


def _folder() -> Path:
    return sources() / "profiles"
