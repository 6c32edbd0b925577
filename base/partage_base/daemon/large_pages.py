"""Memory that stays, moved into large pages.

A daemon that wakes a hundred times a second for a millisecond, on a machine that is busy with other things, spends much
of that time finding out where its memory is: what is known of a large cluster lies on tens of thousands of pages of
4 KiB, looked up in no order. In pages of 2 MiB it is a hundred. Linux does this of itself only where an operator
decided it for all programs (`always`), and never where he decided against it.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_COLLAPSE: Final = 25
"""`MADV_COLLAPSE`; before Linux 6.1 it is an error, and nothing happens."""
_SYSTEM: Final = Path("/sys/kernel/mm/transparent_hugepage")
_SELF: Final = Path("/proc/self")
_OURS: Final = ("[heap]", "[anon:")
"""Allocators may name what they have; stacks are not theirs."""
_LARGE: Final = re.compile(r"^AnonHugePages:\s+(\d+) kB$", re.MULTILINE)


class Range(NamedTuple):
    """Addresses."""

    start: int
    end: int


def movable(maps: Iterable[str], page: int) -> Iterator[Range]:
    """What `/proc/self/maps` has of our own memory, as whole pages of that size."""
    for line in maps:
        place, may, _, _, inode, *name = line.split(maxsplit=5)
        is_ours = not name or name[0].startswith(_OURS)
        if may != "rw-p" or inode != "0" or not is_ours:
            continue
        start, end = (int(address, 16) for address in place.split("-"))
        start, end = -(-start // page) * page, end // page * page
        if start < end:
            yield Range(start, end)


def pack() -> int:
    """Moves what it may; how many bytes lie in large pages now. Other threads go on meanwhile."""
    try:
        if "[never]" in (_SYSTEM / "enabled").read_text():
            return 0
        _collapse(int((_SYSTEM / "hpage_pmd_size").read_text()))
        found = _LARGE.search((_SELF / "smaps_rollup").read_text())
    except OSError:  # a system that has none of it
        return 0
    return int(found[1]) * 1024 if found else 0


def _collapse(page: int) -> None:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for start, end in movable((_SELF / "maps").read_text().splitlines(), page):
        advise(start, end - start, _COLLAPSE)  # what can't be moved stays where it is
