"""Finds the device node of each card.

A card's device node is found by its PCI address in /proc/driver/nvidia/gpus, never by NVML's index: the two orders
differ on some machines, and a guess would hand out another container's card. The file has the UUID only once the card
was used; if it has one, it must match.

A container waits for this: so only the wanted cards are checked, unless one of them has changed.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from partage_plugins.api.gpu import Card

_ADDRESS: Final = re.compile(r"(?P<domain>[0-9a-f]{4,8}):(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.ASCII)
_MINOR: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_INFORMATION_BYTES: Final = 64 * 1024


class KnownNode(NamedTuple):
    """The kernel driver's data of one card."""

    address: str
    uuid: str
    """With question marks until the card is first used."""
    minor: int


class _Source(NamedTuple):
    file: str
    text: str


class CardNodes:
    """The last result, and the files by which it is checked."""

    def __init__(self) -> None:
        self._asked: tuple[object, ...] = ()
        self._found: Mapping[str, tuple[str, _Source]] = {}

    def of(
        self, cards: tuple[Card, ...], roots: tuple[str, ...], devices: str, wanted: Iterable[Card]
    ) -> dict[str, str]:
        """Device nodes by card id, valid for the wanted ones; cards without one, or uncertain ones, are left out."""
        asked = (cards, roots, devices)
        if asked != self._asked or not all(self._stands(card) for card in wanted):
            self._asked, self._found = asked, _looked(cards, roots, devices)
        return {card_id: device for card_id, (device, _) in self._found.items()}

    def _stands(self, card: Card) -> bool:
        if card.id not in self._found:
            return False
        device, source = self._found[card.id]
        return _text(source.file) == source.text and is_device(device)


@functools.lru_cache(maxsize=64)
def parsed(information: str) -> KnownNode | None:
    """One card's file of /proc/driver/nvidia/gpus; cached, as it hardly ever changes."""
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


def node_of(card: Card, known: Iterable[KnownNode]) -> KnownNode | None:
    """The kernel driver's data of this card, or None if it is uncertain."""
    address = normal_address(card.pci)
    found = [node for node in known if node.address == address]
    if len(found) != 1 or ("?" not in found[0].uuid and found[0].uuid != card.id):
        return None
    return found[0]


def is_device(path: str) -> bool:
    """Whether it is a device node; a runtime's error for anything else would name neither card nor cause."""
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)  # noqa: PTH116  as `Path` these looks cost twice
    except OSError:
        return False


def _looked(cards: Iterable[Card], roots: Iterable[str], devices: str) -> dict[str, tuple[str, _Source]]:
    known = next(filter(None, map(_known, roots)), [])
    found: dict[str, tuple[str, _Source]] = {}
    for card in cards:
        node = node_of(card, (each for each, _ in known))
        device = f"{devices}/nvidia{node.minor}" if node else ""
        if node and is_device(device):
            found[card.id] = device, dict(known)[node]
    return found


def _known(root: str) -> list[tuple[KnownNode, _Source]]:
    folder = f"{root}/proc/driver/nvidia/gpus"
    try:
        files = [f"{folder}/{address}/information" for address in sorted(os.listdir(folder))]  # noqa: PTH208  as above
    except OSError:
        return []
    sources = [_Source(file, _text(file)) for file in files]
    return [(node, source) for source in sources if (node := parsed(source.text)) is not None]


def _text(path: str) -> str:
    """The text of a file of /proc; empty if the card falls off the bus meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _INFORMATION_BYTES).decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError:
        return ""
