"""Finds the PCIe root complexes of PCI devices in the kernel's /sys: device paths there begin with the root complex."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_DEVICES: Final = "sys/bus/pci/devices"
_ROOT: Final = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}", re.ASCII)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]", re.ASCII)


def pcie_roots(root: Path, addresses: Iterable[str]) -> dict[str, str]:
    """Root complexes by PCI address; omits devices that the kernel does not know."""
    found = {address: _root(root, address) for address in addresses if _ADDRESS.fullmatch(address)}
    return {address: name for address, name in found.items() if name is not None}


def _root(root: Path, address: str) -> str | None:
    try:
        place = (root / _DEVICES / address.lower()).readlink()
    except OSError:  # the card fell off the bus, or is simulated
        return None
    return next((part for part in place.parts if _ROOT.fullmatch(part)), None)
