"""Rebuilds the GNU hash table, by which the dynamic linker finds names, after names were changed. Pure.

The table requires symbols sorted by their hash, so they move together with their versions. Nothing else may refer to
their places; that is checked.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from partage_isolation.library import elf
from partage_isolation.library.errors import FileRefused

_RELOCATION: Final = struct.Struct("<QQq")
_VERSION_BYTES: Final = 2
_WORD_BITS: Final = 64


def gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def hash_anew(changed: bytearray, found: elf.SharedObject, names: Mapping[int, bytes]) -> None:
    """Sort the symbols by `names`, which is keyed by place, and fill the table; raises `FileRefused`.

    A symbol without a name there is placed before all that are in the table, like imports: the dynamic linker does not
    find it.
    """
    table = found.offset(elf.GNU_HASH)
    buckets, first, words, shift = elf.GNU_HEADER.unpack(_piece(changed, found, table, elf.GNU_HEADER.size))
    count = len(found.symbols) + 1
    if not buckets or not words or not 1 <= first < count:
        raise FileRefused(f"{found.what}: its DT_GNU_HASH has no room")
    _nobody_knows_places(changed, found, first)
    hashes = {place: gnu_hash(names[place]) for place in range(first, count) if place in names}
    hashed = sorted(hashes, key=lambda place: hashes[place] % buckets)
    unhashed = [place for place in range(first, count) if place not in names]
    order = unhashed + hashed
    _move(changed, found, found.offset(elf.SYMTAB), elf.SYMBOL.size, order)
    if elf.VERSYM in found.tags:
        _move(changed, found, found.offset(elf.VERSYM), _VERSION_BYTES, order)
    filled = elf.GNU_HEADER.pack(buckets, first + len(unhashed), words, shift)
    filled += _filter([hashes[place] for place in hashed], words, shift)
    filled += _chains([hashes[place] for place in hashed], buckets, first + len(unhashed))
    _piece(changed, found, table, len(filled))
    changed[table : table + len(filled)] = filled


def _piece(content: bytearray, found: elf.SharedObject, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise FileRefused(f"{found.what}: it ends before {offset + size:#x}")
    return bytes(content[offset : offset + size])


def _nobody_knows_places(content: bytearray, found: elf.SharedObject, first: int) -> None:
    for tag, size in ((elf.RELA, elf.RELASZ), (elf.JMPREL, elf.PLTRELSZ)):
        if tag in found.tags:
            length = found.tags.get(size, 0) // _RELOCATION.size * _RELOCATION.size
            entries = _RELOCATION.iter_unpack(_piece(content, found, found.offset(tag), length))
            if any(info >> 32 >= first for _, info, _ in entries):
                raise FileRefused(f"{found.what}: a relocation knows the place of a symbol of its own")


def _move(changed: bytearray, found: elf.SharedObject, table: int, size: int, order: list[int]) -> None:
    """Reorder entries; `order[0]` goes to the lowest of their places."""
    entries = [_piece(changed, found, table + place * size, size) for place in order]
    start = table + min(order) * size
    changed[start : start + len(entries) * size] = b"".join(entries)


def _filter(hashes: list[int], words: int, shift: int) -> bytes:
    """Build the Bloom filter, which quickly rules out most names that are absent."""
    filled = [0] * words
    for value in hashes:
        filled[value // _WORD_BITS % words] |= 1 << value % _WORD_BITS | 1 << (value >> shift) % _WORD_BITS
    return struct.pack(f"<{words}Q", *filled)


def _chains(hashes: list[int], buckets: int, first: int) -> bytes:
    heads = [0] * buckets
    chains: list[int] = []
    for at, value in enumerate(hashes):
        bucket = value % buckets
        heads[bucket] = heads[bucket] or first + at
        is_last = at + 1 == len(hashes) or hashes[at + 1] % buckets != bucket
        chains.append(value & ~1 | is_last)
    return struct.pack(f"<{buckets + len(chains)}I", *heads, *chains)
