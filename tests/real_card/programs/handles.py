"""Questions about what is passed on between processes: handles of CUDA IPC, descriptors, addresses within a block."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import Any

from real_card.programs.answer import answer
from real_card.programs.driver import MIB, Card, Handle, Pointer

DESCRIPTOR = 1
DEVICE, PINNED = 1, 1
IPC_BYTES = 64


class Ipc(ctypes.Structure):
    _fields_ = (("content", ctypes.c_char * IPC_BYTES),)


def _ipc(card: Card, address: int) -> tuple[int, bytes]:
    handle = Ipc()
    number = card.ask("cuIpcGetMemHandle", ctypes.byref(handle), Pointer(address))
    return number, bytes(handle)


def ipc() -> dict[str, Any]:
    """Two handles of one allocation, and one of an address within it, which the driver may refuse."""
    card = Card()
    base = card.allocate(4 * MIB).value
    _, first = _ipc(card, base)
    _, again = _ipc(card, base)
    number, inner = _ipc(card, base + MIB)
    return {"again_equal": first == again, "interior": number, "interior_equal": first == inner}


def descriptors() -> dict[str, Any]:
    """Two descriptors of one allocation: whether fstat calls them the same, and the same as another allocation's."""
    card = Card()
    properties = struct.pack("iiii", PINNED, DESCRIPTOR, DEVICE, 0).ljust(64, b"\0")
    granularity = ctypes.c_size_t()
    given = ctypes.c_char_p(properties)
    card.call("cuMemGetAllocationGranularity", ctypes.byref(granularity), given, ctypes.c_int(0))
    size = ctypes.c_size_t(granularity.value)
    blocks = [Handle(), Handle()]
    found = []
    for block in blocks:
        card.call("cuMemCreate", ctypes.byref(block), size, given, ctypes.c_uint64(0))
    for block in (blocks[0], blocks[0], blocks[1]):
        descriptor = ctypes.c_int(-1)
        exported = ctypes.byref(descriptor), block, ctypes.c_int(DESCRIPTOR), ctypes.c_uint64(0)
        card.call("cuMemExportToShareableHandle", *exported)
        status = os.fstat(descriptor.value)
        found.append((status.st_dev, status.st_ino, str(Path(f"/proc/self/fd/{descriptor.value}").readlink())))
    return {
        "same_inode": found[0][:2] == found[1][:2],
        "another_inode": found[0][:2] != found[2][:2],
        "opens": found[0][2].partition(":")[0],
    }


def interior() -> dict[str, Any]:
    """Whether the driver takes an address within a mapping for the mapping: to retain its handle, and its range."""
    card = Card()
    properties = ctypes.c_char_p(struct.pack("iiii", PINNED, 0, DEVICE, 0).ljust(64, b"\0"))
    size, block, address = ctypes.c_size_t(4 * MIB), Handle(), Pointer()
    card.call("cuMemCreate", ctypes.byref(block), size, properties, ctypes.c_uint64(0))
    nowhere = ctypes.c_size_t(0), Pointer(0), ctypes.c_uint64(0)
    card.call("cuMemAddressReserve", ctypes.byref(address), size, *nowhere)
    card.call("cuMemMap", address, size, ctypes.c_size_t(0), block, ctypes.c_uint64(0))
    retained = Handle()
    inside = ctypes.c_void_p(address.value + 2 * MIB)
    number = card.ask("cuMemRetainAllocationHandle", ctypes.byref(retained), inside)
    return {"retained": number, "equal": retained.value == block.value}


if __name__ == "__main__":
    sys.exit(answer({"ipc": ipc, "descriptors": descriptors, "interior": interior}))
