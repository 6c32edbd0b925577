"""Calls cuGetProcAddress, ours and the driver's beside it, with every combination; prints the differences as JSON.

It reads the requests, the paths of both libraries, and the offsets of the driver's functions: our library keeps
programs from opening the driver's. A row is name, version, flags and form, then result, address and status of ours and
of the driver's; addresses are relative to the start of each library.
"""

import ctypes
import json
import sys
from itertools import product
from typing import Any

from isolation.real_drivers.programs.pointers import base

FLAGS = (0, 1, 2)
FORMS = ("cuGetProcAddress", "cuGetProcAddress_v2")


def answer(function: Any, form: str, name: bytes, version: int, flags: int) -> tuple[int, int | None, int]:
    """The result, the address and the status."""
    address, status = ctypes.c_void_p(), ctypes.c_int(-1)
    rest = (ctypes.byref(status),) if form == FORMS[1] else ()
    result = function(name, ctypes.byref(address), version, ctypes.c_uint64(flags), *rest)
    return result, address.value, status.value


asked = json.load(sys.stdin)
names = [name.encode() for name in asked["names"]]
ours = ctypes.CDLL("libcuda.so.1")
ours.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))  # loads the driver
bases = base(asked["ours"]), base(asked["theirs"])
count = 0
differences: list[list[Any]] = []
same: set[int] = set()
for form in (form for form in FORMS if form in asked["functions"]):
    ways = getattr(ours, form), ctypes.CFUNCTYPE(ctypes.c_int)(bases[1] + asked["functions"][form])
    for name, version, flags in product(names, asked["versions"], FLAGS):
        count += 1
        mine, real = (answer(way, form, name, version, flags) for way in ways)
        if mine == real:
            same.add((real[1] or bases[1]) - bases[1])
        else:
            at = [found[1] and found[1] - start for found, start in zip((mine, real), bases, strict=True)]
            row = [mine[0], at[0], mine[2], real[0], at[1], real[2]]
            differences.append([name.decode(), version, flags, form, *row])
json.dump({"asked": count, "differences": differences, "same": sorted(same)}, sys.stdout)
