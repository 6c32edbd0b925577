"""CUDA's runtime, as in programs linked with it: found where Python packages install it, or by its name."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from real_card.programs.answer import Absent, answer
from real_card.programs.driver import MIB

NAMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")
PIECE = 256 * MIB
MOST = 4096


def _found() -> ctypes.CDLL:
    folders = [Path(each) for each in sys.path if each.endswith("-packages")]
    packed = [str(path) for folder in folders for path in sorted(folder.glob("nvidia/*/lib/libcudart.so.*"))]
    for path in (*packed, *NAMES):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Absent("libcudart is not installed")


def fill() -> dict[str, Any]:
    """Allocate everything in pieces of 256 MiB, free it, and allocate a piece again: result codes, not amounts."""
    runtime, count, version = _found(), ctypes.c_int(), ctypes.c_int()
    runtime.cudaRuntimeGetVersion(ctypes.byref(version))
    if runtime.cudaGetDeviceCount(ctypes.byref(count)):
        raise Absent("this libcudart does not work with the driver")
    pieces, refusal = list[ctypes.c_void_p](), 0
    while not refusal and len(pieces) < MOST:
        piece = ctypes.c_void_p()
        refusal = runtime.cudaMalloc(ctypes.byref(piece), ctypes.c_size_t(PIECE))
        if not refusal:
            pieces.append(piece)
    touched = runtime.cudaMemset(pieces[-1], ctypes.c_int(1), ctypes.c_size_t(PIECE)) if pieces else None
    freed = {runtime.cudaFree(piece) for piece in pieces}
    runtime.cudaGetLastError()  # clears the refusal, so that later calls do not return it
    again = runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(PIECE))
    waited = runtime.cudaDeviceSynchronize()
    return {
        "version": version.value,
        "cards": count.value,
        "refusal": refusal,
        "touched": touched,
        "freed": sorted(freed),
        "again": again,
        "waited": waited,
    }


if __name__ == "__main__":
    sys.exit(answer({"fill": fill}))
