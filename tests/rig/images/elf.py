"""A program's loader and libraries, as the loader itself finds them.

A program's header names its loader; the loader, run with --list, prints the path of each library. Both glibc's and
musl's do, so nothing here depends on a distribution's paths. Only little-endian ELF-64 is supported: every machine that
partage runs on is little-endian.
"""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit

_MAGIC: Final = b"\x7fELF\x02\x01"
_INTERPRETER: Final = 3  # PT_INTERP
_TABLE: Final = struct.Struct("<Q")  # e_phoff
_TABLE_AT: Final = 32
_ROWS: Final = struct.Struct("<HH")  # e_phentsize, e_phnum
_ROWS_AT: Final = 54
_ROW: Final = struct.Struct("<I4xQ16xQ")  # p_type, p_offset, p_filesz
_LISTED: Final = re.compile(r"=> (/\S+)")


def loader(program: bytes) -> str | None:
    """The path of the loader that a program names; None for a static one."""
    if not program.startswith(_MAGIC):
        raise MachineUnfit("a program for an image is no 64-bit little-endian ELF file")
    (table,) = _TABLE.unpack_from(program, _TABLE_AT)
    size, count = _ROWS.unpack_from(program, _ROWS_AT)
    for row in range(table, table + size * count, size):
        kind, offset, length = _ROW.unpack_from(program, row)
        if kind == _INTERPRETER:
            return program[offset : offset + length].rstrip(b"\0").decode()
    return None


def needed(program: Path) -> frozenset[str]:
    """The loader and the libraries of a dynamic program, with the paths where its loader looks for them."""
    loading = loader(program.read_bytes())
    if loading is None:
        raise MachineUnfit(f"{program} is static; images whose programs are preloaded need a dynamic one")
    done = subprocess.run([loading, "--list", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineUnfit(f"{loading} cannot load {program}: {done.stderr.strip()}")
    return frozenset({loading, *_LISTED.findall(done.stdout)})
