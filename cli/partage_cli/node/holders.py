"""Processes that hold the driver: with an open device node or, for our own, with its library mapped.

A kernel module in use cannot be unloaded, so an upgrade of the driver needs their names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from partage_cli.doctor.local_node import Unseen, names_in, text_of

_LIBRARY: Final = "/libnvidia-ml.so"
_OURS: Final = ("partage-", "partage_")


@dataclass(frozen=True)
class Holder:
    pid: int
    name: str
    is_ours: bool

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})"


def holders(root: Path) -> tuple[Holder, ...]:
    """All holders by pid. Only root sees other users' processes, and only those of its own PID namespace."""
    numbers = names_in(root / "proc")
    found = (
        [] if isinstance(numbers, Unseen) else [_holder(root / "proc" / each) for each in numbers if each.isdecimal()]
    )
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.pid))


def _holder(process: Path) -> Holder | None:
    """None also for a process that ends meanwhile."""
    is_ours = _is_ours(text_of(process / "cmdline"))
    if int(process.name) == os.getpid() or not (_has_device(process) or (is_ours and _has_library(process))):
        return None
    name = text_of(process / "comm")
    return Holder(int(process.name), "?" if isinstance(name, Unseen) else name.strip(), is_ours)


def _is_ours(command_line: str | Unseen) -> bool:
    """`partage-advertiser`, `python -m partage_advertiser`, and their children."""
    words = () if isinstance(command_line, Unseen) else command_line.split("\0")
    return any(PurePath(word).name.startswith(_OURS) for word in words)


def _has_device(process: Path) -> bool:
    return any(PurePath(target).name.startswith("nvidia") and "/dev/" in target for target in _open(process / "fd"))


def _open(folder: Path) -> Iterator[str]:
    names = names_in(folder)
    for name in () if isinstance(names, Unseen) else names:
        try:
            yield os.readlink(folder / name)  # noqa: PTH115  a text is wanted, and there are many
        except OSError:  # closed meanwhile
            continue


def _has_library(process: Path) -> bool:
    maps = text_of(process / "maps")
    return isinstance(maps, str) and _LIBRARY in maps
