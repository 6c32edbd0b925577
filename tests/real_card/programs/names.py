"""Looks up every name that the driver exports, in every form, in the library: no hooked function may come back bare.

Through the preload library the results must be its own entries wherever the driver's function of that name is hooked,
and names that the driver lacks must be missing. cuInit is not called.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

from real_card.programs.answer import Absent, answer
from real_card.programs.driver import LIBRARY

VERSIONS = (
    *(2000, 3020, 4000, 4010, 6050, 7000, 8000, 9000, 10000, 10010, 11000, 11020, 11030, 11040, 11060, 11080),
    *(12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 13050),
)
ROOT = Path(__file__).parents[3]
HOOK = re.compile(r"^(?:GATED_)?HOOK\((cu\w+)\)", re.MULTILINE)
ROUTE = re.compile(r"^ROUTE\((\w+), \d+, \d, (\w+)\)", re.MULTILINE)
NAME = re.compile(r"^NAME\((cu\w+)\)", re.MULTILINE)


class Place(ctypes.Structure):
    """A symbol's place, by dladdr."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def grid(driver_path: str) -> dict[str, Any]:
    """`driver_path` is the driver's own file."""
    ours, driver = ctypes.CDLL(LIBRARY), ctypes.CDLL(driver_path)
    if not hasattr(ours, "partage_library"):
        raise Absent("the library is not preloaded")
    libc = ctypes.CDLL(None)
    hooked = set(HOOK.findall((ROOT / "isolation/preload/hooks/hooks.def").read_text()))
    table = (ROOT / "isolation/driver/cuda.def").read_text()
    routes = ROUTE.findall(table)
    names = {function for _, function in routes} | set(NAME.findall(table))
    theirs = {name for name in names if hasattr(driver, name)}
    asked, answered, leaks = 0, 0, set()
    for name in sorted({route for route, _ in routes} | names):
        for version in VERSIONS:
            for flags in range(3):
                found, place = ctypes.c_void_p(), Place()
                given = ctypes.c_char_p(name.encode()), ctypes.byref(found), ctypes.c_int(version)
                asked += 1
                if ours.cuGetProcAddress_v2(*given, ctypes.c_uint64(flags), None) or not found.value:
                    continue
                answered += 1
                libc.dladdr(found, ctypes.byref(place))
                symbol = (place.symbol or b"").decode()
                exact = place.address == found.value and symbol in hooked
                if exact and not exports(place, "partage_library"):
                    leaks.add(f"{name} {version} {flags}")
    lacking = [name for name in names if name not in theirs and hasattr(ours, name)]
    return {"asked": asked, "answered": answered, "leaks": sorted(leaks)[:50], "lacking_but_there": len(lacking)}


def exports(place: Place, name: str) -> bool:
    """Whether the object that contains an address exports a name itself."""
    try:
        return hasattr(ctypes.CDLL((place.file or b"").decode()), name)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(answer({"grid": grid}))
