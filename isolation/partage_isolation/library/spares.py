"""Gives spare exports of a built object the names that a driver has and our tables do not. Pure: bytes in, bytes out.

A spare is an entry like any other; only its name has no meaning. The new name is written over the old one in the table
of strings, and the table of hashes is made again. Which name an entry has it asks the dynamic linker, when it is first
called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from partage_isolation.library import elf
from partage_isolation.library.errors import FileRefused
from partage_isolation.library.gnu_hash import hash_anew

SPARE: Final = re.compile(rb"partage_spare_[0-9a-f]{2}_+")
_NAME: Final = re.compile(r"[A-Za-z_]\w{1,62}", re.ASCII)


@dataclass(frozen=True)
class Named:
    content: bytes
    added: tuple[str, ...]
    left_out: tuple[str, ...]
    """What the driver has and this object still lacks: there are too many, or a name is too long."""


def name_spares(content: bytes, names: Iterable[str], what: str) -> Named:
    """The object `content` that exports `names` too. Raises `FileRefused` where it is none of ours."""
    found = elf.read(lambda offset, size: content[offset : offset + size], what)
    missing = sorted(set(names) - found.functions())
    spares = [symbol for symbol in found.symbols if symbol.is_function and SPARE.fullmatch(symbol.name)]
    spares.sort(key=lambda symbol: symbol.name)
    fitting = [name for name in missing if _NAME.fullmatch(name)]
    added = tuple(fitting[: len(spares)])
    left_out = tuple(name for name in missing if name not in set(added))
    if not added:
        return Named(content, (), left_out)
    changed = bytearray(content)
    texts = {symbol.place: symbol.name for symbol in found.symbols}
    used = sorted({symbol.text for symbol in found.symbols} | set(found.texts))
    for spare, name in zip(spares, added, strict=False):
        _write(changed, found, spare, name.encode(), used)
        texts[spare.place] = name.encode()
    hash_anew(changed, found, texts)
    return Named(bytes(changed), added, left_out)


def _write(changed: bytearray, found: elf.SharedObject, spare: elf.Symbol, name: bytes, used: list[int]) -> None:
    room = len(spare.name)
    if len(name) > room or any(spare.text < start <= spare.text + room for start in used):
        raise FileRefused(f"{found.what}: the name of {spare.name.decode()} cannot be replaced")
    start = found.offset(elf.STRTAB) + spare.text
    changed[start : start + room] = name.ljust(room, b"\0")
