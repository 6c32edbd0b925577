"""Gives a built object the names that a node's driver exports, and no others. Pure: bytes in, bytes out.

A name that the driver lacks is hidden, since programs test for exports: numba uses `_v2` of a function wherever it
finds one. The dynamic linker finds names only by the hash table, so a symbol outside of it is not exported.

A name that our tables lack is given to a spare, which is an entry point like any other: its own name is overwritten in
the string table. On its first call, an entry point asks the dynamic linker for its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from partage_isolation.library import elf
from partage_isolation.library.errors import FileRefused
from partage_isolation.library.gnu_hash import hash_anew

SPARE: Final = re.compile(rb"partage_spare_[0-9a-f]{2}_+")
_NAME: Final = re.compile(r"(cu[A-Z]|nvml)\w*", re.ASCII)
"""Names that programs request. All others stay the driver's, such as `cudbg*`, in which cuda-gdb sets breakpoints."""
_LONGEST: Final = 63


@dataclass(frozen=True)
class Fitted:
    content: bytes
    added: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Exports of the driver that this object still lacks: there are too many, or a name is too long."""


def fit_exports(content: bytes, driver: Collection[str], what: str) -> Fitted:
    """The object `content` with the exports of a driver. Raises `FileRefused` where it is not one of ours."""
    found = elf.read(lambda offset, size: content[offset : offset + size], what)
    wanted = {name for name in driver if _NAME.fullmatch(name)}
    _refuse_another_drivers(found, wanted)
    functions = found.functions()
    spares = [symbol for symbol in found.symbols if symbol.is_function and SPARE.fullmatch(symbol.name)]
    spares.sort(key=lambda symbol: symbol.name)
    missing = sorted(wanted - functions)
    added = tuple([name for name in missing if len(name) <= _LONGEST][: len(spares)])
    left_out = tuple(name for name in missing if name not in set(added))
    hidden = tuple(sorted(name for name in functions - wanted if _NAME.fullmatch(name)))
    if not added and not hidden:
        return Fitted(content, left_out=left_out)
    changed = bytearray(content)
    texts = {symbol.place: symbol.name for symbol in found.symbols}
    used = sorted({symbol.text for symbol in found.symbols} | set(found.texts))
    for spare, name in zip(spares, added, strict=False):
        _write(changed, found, spare, name.encode(), used)
        texts[spare.place] = name.encode()
    lacking = {name.encode() for name in hidden}
    for symbol in found.symbols:
        if symbol.name in lacking:
            _hide(changed, found, symbol)
            del texts[symbol.place]
    hash_anew(changed, found, texts)
    return Fitted(bytes(changed), added, hidden, left_out)


def _refuse_another_drivers(found: elf.SharedObject, wanted: set[str]) -> None:
    """Reject an object for another driver: a hidden name would be given to a spare, which has no hook."""
    hidden = {symbol.name.decode(errors="replace") for symbol in found.symbols if not symbol.is_function} & wanted
    if hidden:
        raise FileRefused(f"{found.what}: it was made for another driver, without {min(hidden)}; build it again")


def _write(changed: bytearray, found: elf.SharedObject, spare: elf.Symbol, name: bytes, used: list[int]) -> None:
    room = len(spare.name)
    if len(name) > room or any(spare.text < start <= spare.text + room for start in used):
        raise FileRefused(f"{found.what}: the name of {spare.name.decode()} cannot be replaced")
    start = found.offset(elf.STRTAB) + spare.text
    changed[start : start + room] = name.ljust(room, b"\0")


def _hide(changed: bytearray, found: elf.SharedObject, symbol: elf.Symbol) -> None:
    """Hide a symbol also from readers of the symbol table itself."""
    changed[found.offset(elf.SYMTAB) + symbol.place * elf.SYMBOL.size + elf.VISIBILITY_AT] = elf.HIDDEN
