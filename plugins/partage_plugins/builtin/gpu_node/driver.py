"""Looks for the installed driver: device nodes, libraries, programs.

A card's device node is found by its PCI address in /proc/driver/nvidia/gpus, never by NVML's index: the two count in
different orders on some machines, and a guess would hand out somebody else's card. The UUID stands there only once the
card was used; where it does, it must agree.

A container waits while this looks. So paths are plain strings here: as `Path` they cost twice the look itself.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from partage_plugins.builtin.gpu_node.libraries import Libraries
from partage_plugins.builtin.gpu_node.raw import CONTROLS, PROGRAMS, InstalledDriver
from partage_plugins.errors import Refused
from partage_plugins.vocabulary.gpu import Card, GpuPart

_VERSION: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){1,3}", re.ASCII)
_ADDRESS: Final = re.compile(r"(?P<domain>[0-9a-f]{4,8}):(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.ASCII)
_MINOR: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_INFORMATION_BYTES: Final = 64 * 1024


class KnownNode(NamedTuple):
    """What the kernel driver says of one card."""

    address: str
    uuid: str
    """With question marks until the card was first used."""
    minor: int


def installed_driver(
    part: GpuPart, *, root: Path, driver_root: str, libraries: Libraries | None = None
) -> InstalledDriver:
    """What there is of the driver of these cards; `libraries` remembers what was found before."""
    if not _VERSION.fullmatch(part.driver):
        raise Refused(f"partage: {part.driver!r:.80} in this node's inventory is no version of an NVIDIA driver")
    base, home = _text_of(root), _text_of(root / driver_root.lstrip("/"))
    devices = f"{home}/dev" if _is_device(f"{home}/dev/nvidiactl") else f"{base}/dev"
    triplet = f"{os.uname().machine}-linux-gnu"
    return InstalledDriver(
        version=part.driver,
        root=home or "/",
        triplet=triplet,
        cards=dict(_cards(part.cards, (home, base), devices)),
        controls={name: f"{devices}/{name}" for name in CONTROLS if _is_device(f"{devices}/{name}")},
        libraries=(libraries or Libraries()).of(home, triplet, part.driver),
        programs={name: f"{home}/usr/bin/{name}" for name in PROGRAMS if _is_file(f"{home}/usr/bin/{name}")},
    )


@functools.lru_cache(maxsize=64)
def parsed(information: str) -> KnownNode | None:
    """One card's file of /proc/driver/nvidia/gpus; it hardly ever says anything new."""
    pairs = (line.partition(":") for line in information.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    address, minor = normal_address(fields.get("Bus Location", "")), fields.get("Device Minor", "")
    if address is None or not _MINOR.fullmatch(minor):
        return None
    return KnownNode(address, fields.get("GPU UUID", "?"), int(minor))


def normal_address(address: str) -> str | None:
    """A PCI address with a domain of four digits: NVML writes eight, the kernel four."""
    match = _ADDRESS.fullmatch(address.lower())
    return f"{int(match['domain'], 16):04x}:{match['rest']}" if match else None


def node_of(card: Card, known: Iterable[KnownNode]) -> int | None:
    """The minor number of a card's device node, or None where that is not certain."""
    address = normal_address(card.pci)
    found = [node for node in known if node.address == address]
    if len(found) != 1 or ("?" not in found[0].uuid and found[0].uuid != card.id):
        return None
    return found[0].minor


def _text_of(folder: Path) -> str:
    """What a slash and a name are put behind; nothing for the root itself."""
    return str(folder).rstrip("/")


def _cards(cards: Iterable[Card], roots: Iterable[str], devices: str) -> Iterator[tuple[str, str]]:
    known = list(next(filter(None, map(_known, roots)), []))
    for card in cards:
        minor = node_of(card, known)
        if minor is not None and _is_device(f"{devices}/nvidia{minor}"):
            yield card.id, f"{devices}/nvidia{minor}"


def _known(root: str) -> list[KnownNode]:
    folder = f"{root}/proc/driver/nvidia/gpus"
    try:
        addresses = sorted(os.listdir(folder))  # noqa: PTH208  see above
    except OSError:
        return []
    nodes = (parsed(_text(f"{folder}/{address}/information")) for address in addresses)
    return [node for node in nodes if node is not None]


def _text(path: str) -> str:
    """The text of a file of /proc; a card that falls off the bus while we look has none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _INFORMATION_BYTES).decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError:
        return ""


def _is_file(path: str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  see above


def _is_device(path: str) -> bool:
    """A runtime would refuse what is no device node with a message that names neither card nor cause."""
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)  # noqa: PTH116  see above
    except OSError:
        return False
