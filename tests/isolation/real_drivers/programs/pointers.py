"""Locates addresses in the driver's libraries: ours and the driver's have the same name."""

import ctypes
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Mapping(NamedTuple):
    start: int
    end: int
    rights: str
    path: str


def mappings() -> Iterator[Mapping]:
    with open("/proc/self/maps", encoding="utf-8") as file:  # noqa: PTH123  a few lines that run in many environments
        for line in file:
            fields = line.split(maxsplit=5)
            start, _, end = fields[0].partition("-")
            yield Mapping(int(start, 16), int(end, 16), fields[1], fields[5].strip() if len(fields) > 5 else "")


def base(library: str) -> int:
    """The start address of the file with that path."""
    return min(each.start for each in mappings() if each.path == library)


def places(addresses: Iterable[int]) -> list[tuple[str, int] | None]:
    """For each address the path of its library and the offset in it, or None if it is in no libcuda."""
    libraries: dict[str, tuple[int, int]] = {}
    for each in mappings():
        if "libcuda.so" in each.path:
            start, end = libraries.get(each.path, (each.start, each.end))
            libraries[each.path] = min(start, each.start), max(end, each.end)
    return [
        next(((path, address - start) for path, (start, end) in libraries.items() if start <= address < end), None)
        for address in addresses
    ]


def words_of(library: str) -> list[int]:
    """All words that a library may write: its data, and the anonymous mapping after it."""
    found: list[int] = []
    before = ""
    for each in mappings():
        path = each.path or before
        before = path
        if library in path and each.rights.startswith("rw"):
            found += (ctypes.c_uint64 * ((each.end - each.start) // 8)).from_address(each.start)
    return found
