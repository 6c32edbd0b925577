"""Minimal ELF shared objects, with only the parts that define their exports."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from partage_isolation.library.gnu_hash import gnu_hash

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DEFINED, _UNDEFINED = 7, 0
_GLOBAL_FUNCTION = 0x12
_BUCKETS, _WORDS = 3, 2
SONAME = b"libmade.so.1"


def spare_name(number: int) -> str:
    """The name that our objects give to an unused entry."""
    return f"partage_spare_{number:02x}".ljust(63, "_")


def shared_object(
    functions: Sequence[str], *, imported: Sequence[str] = ("memcpy",), gnu: bool = True, machine: int = 62
) -> bytes:
    """An object that exports `functions`, with a GNU or a SysV hash table."""
    names = [*imported, *functions]
    text, starts = b"\0" + SONAME + b"\0", []
    for name in names:
        starts.append(len(text))
        text += name.encode() + b"\0"
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    for name, start in zip(names, starts, strict=True):
        section = _UNDEFINED if name in imported else _DEFINED
        symbols += _SYMBOL.pack(start, _GLOBAL_FUNCTION, 0, section, 0x1000, 1)
    table = _gnu(len(imported), len(names)) if gnu else _sysv(names)
    return _whole(text, symbols, table, 0x6FFFFEF5 if gnu else 4, machine)


def _sysv(names: Sequence[str]) -> bytes:
    """A SysV hash table with one bucket; no test looks a name up in it."""
    count = len(names) + 1
    chains = [0, *range(2, count), 0][:count]
    return struct.pack(f"<{3 + count}I", 1, count, 1 if names else 0, *chains)


def _gnu(imported: int, count: int) -> bytes:
    """A GNU hash table, all in one bucket; its empty Bloom filter fails any lookup, but has the size of a real one."""
    first, defined = imported + 1, count - imported
    heads, chains = [0] * _BUCKETS, [2] * (defined - 1) + [3] if defined else []
    heads[0] = first if defined else 0
    return struct.pack(
        f"<4I{_WORDS}Q{_BUCKETS + len(chains)}I", _BUCKETS, first, _WORDS, 5, *[0] * _WORDS, *heads, *chains
    )


def _whole(text: bytes, symbols: bytes, table: bytes, kind: int, machine: int) -> bytes:
    start = _HEADER.size + 2 * _SEGMENT.size
    at_symbols = start + len(text)
    at_table = at_symbols + len(symbols)
    at_dynamic = at_table + len(table)
    entries = [(14, 1), (5, start), (10, len(text)), (6, at_symbols), (kind, at_table), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in entries)
    size = at_dynamic + len(dynamic)
    header = _HEADER.pack(
        b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), 3, machine, 1, 0, 64, 0, 0, 64, _SEGMENT.size, 2, 0, 0, 0
    )
    segments = _SEGMENT.pack(1, 5, 0, 0, 0, size, size, 4096)
    segments += _SEGMENT.pack(2, 4, at_dynamic, at_dynamic, 0, len(dynamic), len(dynamic), 8)
    return header + segments + text + symbols + table + dynamic


def found_by_hash(content: bytes, name: str) -> bool:
    """Whether the dynamic linker would find it in a GNU-style object made here."""
    tags = dict(struct.iter_unpack("<qQ", content[_dynamic_at(content) :][: 6 * 16]))
    table, value = tags[0x6FFFFEF5], gnu_hash(name.encode())
    buckets, first, words, shift = struct.unpack_from("<4I", content, table)
    (word,) = struct.unpack_from("<Q", content, table + 16 + 8 * (value // 64 % words))
    if not (word >> value % 64) & (word >> (value >> shift) % 64) & 1:
        return False
    heads = table + 16 + 8 * words
    (place,) = struct.unpack_from("<I", content, heads + 4 * (value % buckets))
    while place:
        (hashed,) = struct.unpack_from("<I", content, heads + 4 * buckets + 4 * (place - first))
        if hashed | 1 == value | 1 and _name_at(content, tags, place) == name.encode():
            return True
        place = 0 if hashed & 1 else place + 1
    return False


def _name_at(content: bytes, tags: dict[int, int], place: int) -> bytes:
    start = tags[5] + _SYMBOL.unpack_from(content, tags[6] + _SYMBOL.size * place)[0]
    return content[start : content.index(0, start)]


def _dynamic_at(content: bytes) -> int:
    return int(_SEGMENT.unpack_from(content, _HEADER.size + _SEGMENT.size)[2])
