"""Reads a shared object's exports from its dynamic section, like the dynamic linker, without trusting the file.

Offsets, sizes and counts in the file are compared with its real content, and a mismatch raises `FileRefused`. Files are
read in pieces, since a driver's library has a hundred megabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from partage_isolation.library.errors import FileRefused

Pieces = Callable[[int, int], bytes]
"""`pieces(offset, size)`: the file's bytes at the offset, fewer at its end."""

_MOST_BYTES: Final = 64 << 20
_MOST_SYMBOLS: Final = 1 << 20
_IDENT: Final = b"\x7fELF\x02\x01\x01"
_SHARED_OBJECT: Final = 3
_LOAD, _DYNAMIC = 1, 2
NEEDED, HASH, STRTAB, SYMTAB, STRSZ, SONAME, RPATH, RUNPATH = 1, 4, 5, 6, 10, 14, 15, 29
RELA, RELASZ, PLTRELSZ, JMPREL = 7, 8, 2, 23
GNU_HASH, VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_ENTRY: Final = struct.Struct("<qQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
VISIBILITY_AT: Final = 5
HIDDEN: Final = 2
"""A symbol's visibility, and its offset in the symbol."""
GNU_HEADER: Final = struct.Struct("<IIII")
"""Number of buckets, first symbol in them, number of words in the filter, and its shift."""
_FUNCTIONS: Final = frozenset((2, 10))  # STT_FUNC, STT_GNU_IFUNC
_VISIBLE: Final = frozenset((0, 3))  # STV_DEFAULT, STV_PROTECTED


@dataclass(frozen=True)
class Symbol:
    place: int
    text: int
    """Offset of its name in the string table."""
    name: bytes
    is_function: bool
    """Defined here, and visible to others."""


@dataclass(frozen=True)
class SharedObject:
    what: str
    machine: int
    symbols: Sequence[Symbol]
    """All but the first, which is no symbol."""
    texts: Sequence[int]
    """Offsets of other names in the string table: of needed libraries, and the object's own."""
    tags: Mapping[int, int]
    """The dynamic section: the first entry of each tag."""
    loads: Sequence[tuple[int, int, int]]
    """Loaded segments: address, offset in the file, size."""

    def offset(self, tag: int) -> int:
        """File offset of the table with that tag."""
        if tag not in self.tags:
            raise FileRefused(f"{self.what}: its dynamic section has no entry {tag:#x}")
        return _offset(self.loads, self.tags[tag], self.what)

    def functions(self) -> frozenset[str]:
        return frozenset(
            symbol.name.decode() for symbol in self.symbols if symbol.is_function and symbol.name.isascii()
        )


def read(pieces: Pieces, what: str) -> SharedObject:
    """Parse a shared object; raises `FileRefused`, with `what` in its message."""
    return _Reading(pieces, what).read()


class _Reading:
    def __init__(self, pieces: Pieces, what: str) -> None:
        self._pieces = pieces
        self._what = what
        self._loads: list[tuple[int, int, int]] = []

    def read(self) -> SharedObject:
        machine, segments = self._segments()
        self._loads = [(address, offset, size) for kind, offset, address, size in segments if kind == _LOAD]
        entries = self._entries(segments)
        tags = dict(reversed(entries))  # the first of each
        text = self._bytes(self._offset(self._tag(tags, STRTAB)), self._tag(tags, STRSZ))
        count = self._hashed(tags[HASH]) if HASH in tags else self._gnu_hashed(self._tag(tags, GNU_HASH))
        table = self._bytes(self._offset(self._tag(tags, SYMTAB)), count * SYMBOL.size)
        symbols = [self._symbol(place, fields, text) for place, fields in enumerate(SYMBOL.iter_unpack(table)) if place]
        texts = [value for tag, value in entries if tag in (NEEDED, SONAME, RPATH, RUNPATH)]
        return SharedObject(self._what, machine, symbols, texts, tags, self._loads)

    def _segments(self) -> tuple[int, list[tuple[int, int, int, int]]]:
        fields = _HEADER.unpack(self._bytes(0, _HEADER.size))
        ident, kind, machine, start, size, count = fields[0], fields[1], fields[2], fields[5], fields[9], fields[10]
        if not ident.startswith(_IDENT) or kind != _SHARED_OBJECT or size != _SEGMENT.size:
            raise self._refused("it is no shared object for 64 bits, little-endian")
        table = self._bytes(start, count * size)
        found = _SEGMENT.iter_unpack(table)
        return machine, [(kind, offset, address, size) for kind, _, offset, address, _, size, _, _ in found]

    def _entries(self, segments: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
        place = next(((offset, size) for kind, offset, _, size in segments if kind == _DYNAMIC), None)
        if place is None:
            raise self._refused("it has no dynamic section")
        offset, size = place
        entries = list(_ENTRY.iter_unpack(self._bytes(offset, size - size % _ENTRY.size)))
        end = next((at for at, (tag, _) in enumerate(entries) if tag == 0), len(entries))
        return entries[:end]

    def _hashed(self, address: int) -> int:
        _, count = struct.unpack("<II", self._bytes(self._offset(address), 8))
        return self._limited(count)

    def _gnu_hashed(self, address: int) -> int:
        """One more than the last symbol in any chain."""
        offset = self._offset(address)
        buckets, first, words, _ = GNU_HEADER.unpack(self._bytes(offset, GNU_HEADER.size))
        offset += GNU_HEADER.size + 8 * self._limited(words)
        heads = struct.unpack(f"<{self._limited(buckets)}I", self._bytes(offset, 4 * buckets))
        last = max(heads, default=0)
        if last < first:
            return self._limited(first)
        chains = offset + 4 * buckets - 4 * first
        while not self._bytes(chains + 4 * self._limited(last), 1)[0] & 1:
            last += 1
        return last + 1

    def _symbol(self, place: int, fields: tuple[int, ...], text: bytes) -> Symbol:
        start, info, other, section = fields[:4]
        end = text.find(0, start) if start < len(text) else -1
        if end < 0:
            raise self._refused(f"the name of symbol {place} does not end in the table of strings")
        seen = section != 0 and info >> 4 in (1, 2) and other & 3 in _VISIBLE
        return Symbol(place, start, text[start:end], seen and info & 15 in _FUNCTIONS)

    def _offset(self, address: int) -> int:
        return _offset(self._loads, address, self._what)

    def _tag(self, tags: dict[int, int], tag: int) -> int:
        if tag not in tags:
            raise self._refused(f"its dynamic section has no entry {tag:#x}")
        return tags[tag]

    def _bytes(self, offset: int, size: int) -> bytes:
        if size > _MOST_BYTES or offset + size >= 1 << 63:
            raise self._refused(f"a table of {size} bytes at {offset:#x} is none")
        found = self._pieces(offset, size)
        if len(found) < size:
            raise self._refused(f"it ends before {offset + size:#x}")
        return found

    def _limited(self, count: int) -> int:
        if count > _MOST_SYMBOLS:
            raise self._refused(f"{count} symbols are too many")
        return count

    def _refused(self, why: str) -> FileRefused:
        return FileRefused(f"{self._what}: {why}")


def _offset(loads: Sequence[tuple[int, int, int]], address: int, what: str) -> int:
    for start, offset, size in loads:
        if start <= address < start + size:
            return address - start + offset
    raise FileRefused(f"{what}: address {address:#x} is in no segment")
