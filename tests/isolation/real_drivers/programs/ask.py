"""Asks cuGetProcAddress, ours and the driver's beside it, every combination; prints where they differ, as JSON.

Reads the names and versions. Each answer that differs is told as [name, version, flags, form, our result, our address,
the driver's result, the driver's address], with addresses that count from where each library begins.
"""

import ctypes
import json
import sys
from itertools import product
from typing import Any

FLAGS = (0, 1, 2)
FORMS = ("cuGetProcAddress", "cuGetProcAddress_v2")


class Info(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    )


def base_of(function: Any) -> int:
    info = Info()
    assert ctypes.CDLL(None).dladdr(function, ctypes.byref(info))
    return int(info.base)


def answer(function: Any, form: str, name: bytes, version: int, flags: int) -> tuple[int, int | None, int]:
    """The result, the address and the status."""
    address, status = ctypes.c_void_p(), ctypes.c_int(-1)
    rest = (ctypes.byref(status),) if form == FORMS[1] else ()
    result = function(name, ctypes.byref(address), version, ctypes.c_uint64(flags), *rest)
    return result, address.value, status.value


ours, theirs = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(sys.argv[1])
asked = json.load(sys.stdin)
names = [name.encode() for name in asked["names"]]
bases = base_of(ours.cuInit), base_of(theirs.cuInit)
count = 0
differences: list[list[Any]] = []
same: set[int] = set()
for form in FORMS:
    if not hasattr(theirs, form):
        continue
    ways = getattr(ours, form), getattr(theirs, form)
    for name, version, flags in product(names, asked["versions"], FLAGS):
        count += 1
        mine, real = (answer(way, form, name, version, flags) for way in ways)
        if mine == real:
            same.add((real[1] or bases[1]) - bases[1])
        else:
            places = [found[1] and found[1] - base for found, base in zip((mine, real), bases, strict=True)]
            row = [mine[0], places[0], mine[2], real[0], places[1], real[2]]
            differences.append([name.decode(), version, flags, form, *row])
json.dump({"asked": count, "differences": differences, "same": sorted(same)}, sys.stdout)
