"""What the kernel says of a PCI device and of memory, where NVML does not."""

from __future__ import annotations

import os


def numa_node_of(driver_root: str, pci: str) -> int | None:
    """The nearest node of the machine's memory; none on machines with only one."""
    path = os.path.join(driver_root, "sys/bus/pci/devices", pci, "numa_node")  # noqa: PTH118  pathlib is memory
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            node = int(file.read())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def host_memory_bytes() -> int:
    """All of the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
