"""Whether a tree has all libraries that its programs need, and uses none of the node's system. Pure.

The interpreter's DT_RPATH is searched for itself and for all that it loads, unless an object has a DT_RUNPATH of its
own. A wheel that ships libraries has one; it is turned into a DT_RPATH, so that both are searched.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final

from partage_bundle.recipe import Machine

MAGIC: Final = b"\x7fELF\x02\x01"
_MACHINE_AT: Final = 18
_TABLE: Final = struct.Struct("<Q")  # e_phoff
_TABLE_AT: Final = 32
_SECTIONS_AT: Final = 40  # e_shoff
_ROWS: Final = struct.Struct("<HH")  # e_phentsize, e_phnum
_ROWS_AT: Final = 54
_SECTIONS_COUNTED_AT: Final = 60  # e_shnum, e_shstrndx
_ROW: Final = struct.Struct("<8xQ16xQ")  # p_offset, p_filesz


@dataclass(frozen=True)
class Facts:
    """An object's machine, and its dynamic section as patchelf prints it."""

    machine: int
    needed: tuple[str, ...]
    searched: tuple[str, ...]
    """DT_RUNPATH or DT_RPATH, with $ORIGIN unexpanded."""


def machine_of(head: bytes) -> int | None:
    """The machine number in the header of a 64-bit object; None for anything else."""
    if not head.startswith(MAGIC):
        return None
    return int.from_bytes(head[_MACHINE_AT : _MACHINE_AT + 2], "little")


def loaded(content: bytes) -> bytes:
    """The object without what only debuggers read: symbols, lines, the section table. Loaders read only segments.

    No program that strips objects of every machine can be locked; all that is removed lies behind the last segment.
    """
    (table,) = _TABLE.unpack_from(content, _TABLE_AT)
    size, count = _ROWS.unpack_from(content, _ROWS_AT)
    rows = [_ROW.unpack_from(content, table + size * number) for number in range(count)]
    end = max(table + size * count, *(offset + length for offset, length in rows))
    head = bytearray(content[:end])
    head[_SECTIONS_AT : _SECTIONS_AT + 8] = bytes(8)
    head[_SECTIONS_COUNTED_AT : _SECTIONS_COUNTED_AT + 4] = bytes(4)
    return bytes(head)


def complaints(objects: Mapping[str, Facts], machine: Machine) -> list[str]:
    """One line for each problem, by the path of the object in the tree."""
    return [line for path, facts in sorted(objects.items()) for line in _of_one(path, facts, objects, machine)]


def _of_one(path: str, facts: Facts, objects: Mapping[str, Facts], machine: Machine) -> Iterable[str]:
    if facts.machine != machine.elf:
        yield f"{path} is for another machine than {machine.name}"
    origin = f"/{PurePosixPath(path).parent}"
    own = [normpath(each.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)) for each in facts.searched]
    for name in facts.needed:
        if not any(f"{folder}/{name}".removeprefix("/") in objects for folder in (*own, "/lib")):
            yield f"{path} needs {name}, which is not in the tree"
