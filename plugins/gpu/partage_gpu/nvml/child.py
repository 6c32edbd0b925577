"""The child process that monitors cards: opens the driver once, runs a session, and reports why it ends."""

from __future__ import annotations

import ctypes
import sys

from partage_gpu.nvml import wire
from partage_gpu.nvml.parent import Parent, give_memory_back, live


def _session(driver_root: str, _: ctypes.CDLL, parent: Parent[wire.Question, wire.Told]) -> None:
    from partage_gpu.nvml.session import Session  # noqa: PLC0415  pynvml is of use only where there is a driver

    give_memory_back()
    Session(driver_root, parent).serve()


if __name__ == "__main__":
    live(sys.argv[1], wire.WORDS, _session)
