"""Floods a card with kernels of a millisecond, as programs do that are not metered unless somebody looks closely.

    around_process.py WAY DRIVER

past    its context is made by the driver itself, loaded by its path DRIVER
open    a stream captures, and goes on to
leaked  a stream was destroyed while it captured
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Final

KERNEL_NS: Final = 1_000_000
NON_BLOCKING, RELAXED = 1, 2
LEGACY: Final = 1

_cuda = ctypes.CDLL("libcuda.so.1")
_driver = ctypes.CDLL(sys.argv[2])


def call(name: str, *arguments: object, library: ctypes.CDLL = _cuda) -> None:
    plain = [ctypes.c_uint64(one) if isinstance(one, int) else one for one in arguments]
    if number := getattr(library, name)(*plain):
        raise SystemExit(f"{name} answered {number}")


def told(name: str, *arguments: object, library: ctypes.CDLL = _cuda) -> int:
    value = ctypes.c_uint64()
    call(name, ctypes.byref(value), *arguments, library=library)
    return value.value


def context(way: str) -> None:
    call("cuInit", 0)
    time.sleep(0.2)  # by then the library does all that it does by itself
    library = _driver if way == "past" else _cuda
    call("cuCtxSetCurrent", told("cuDevicePrimaryCtxRetain", 0, library=library), library=library)


def stream(way: str) -> int:
    made = told("cuStreamCreate", NON_BLOCKING)
    if way not in {"open", "leaked"}:
        return made
    call("cuStreamBeginCapture_v2", made, RELAXED)
    if way == "leaked":
        call("cuStreamDestroy_v2", made)
    return LEGACY


def main() -> None:
    way = sys.argv[1]
    context(way)
    into = stream(way)
    function = told("cuModuleGetFunction", told("cuModuleLoadData", b"anything"), b"sim_arg")
    duration = ctypes.c_uint64(KERNEL_NS)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
    shape = [ctypes.c_int(1)] * 6 + [ctypes.c_int(0)]
    while True:
        call("cuLaunchKernel", function, *shape, into, parameters, None)


if __name__ == "__main__":
    main()
