"""The beginning of the file of rows: what it is, how large its places are, and of which boot. Pure."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from partage_isolation.broker.rows import PLACE_BYTES

HEADER_BYTES: Final = 4096
_MAGIC: Final = b"partage rows\0\0\0\0"
_LAYOUT: Final = 1
_HEADER: Final = struct.Struct("<16sIIII32s")
"""Magic, layout, bytes of a place, rows, unused, boot."""
_LARGEST_PLACE: Final = 4096


class Shape(NamedTuple):
    """How large a file is."""

    place_bytes: int
    rows: int

    @property
    def length(self) -> int:
        """Of the whole file: each row has two places."""
        return HEADER_BYTES + 2 * self.place_bytes * self.rows

    def at(self, slot: int, place: int = 0) -> int:
        """Where a place of a row begins."""
        return HEADER_BYTES + (2 * slot + place) * self.place_bytes


def pack_header(shape: Shape, boot: str) -> bytes:
    """Of a file of this version."""
    return _HEADER.pack(_MAGIC, _LAYOUT, shape.place_bytes, shape.rows, 0, _boot(boot))


def read_header(header: bytes, boot: str, length: int) -> Shape | str:
    """The shape, or why a file of that length can't be read: empty where it may be forgotten without harm."""
    if len(header) < _HEADER.size:
        return "it is cut off"
    magic, layout, place_bytes, rows, _, its_boot = _HEADER.unpack_from(header)
    if magic != _MAGIC:
        return "it is no file of rows"
    if its_boot != _boot(boot):
        return ""  # no process of that boot lives
    if layout != _LAYOUT or not PLACE_BYTES <= place_bytes <= _LARGEST_PLACE:
        return f"its layout is {layout} with places of {place_bytes} bytes; this broker reads layout {_LAYOUT}"
    shape = Shape(place_bytes, rows)
    return shape if rows and length >= shape.length else "it is cut off"


def _boot(boot: str) -> bytes:
    return boot.encode()[:32].ljust(32, b"\0")
