"""The child process that calls the driver for checkpoints of other processes, one call at a time.

It has no context, so it holds nothing of a card. A call may take minutes, or hang: then the parent kills this process.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Final

from partage_base.peers import start_of
from partage_gpu.driver_root import file_below
from partage_gpu.nvml.parent import Parent, live
from partage_isolation.checkpoint.messages import (
    LONGEST_WHY,
    WORDS,
    BrokerReport,
    Call,
    Called,
    CheckpointState,
    Opened,
    Step,
)

_LIBRARY: Final = "libcuda.so.1"
_NOT_SUPPORTED: Final = 801
_WISHES: Final = struct.Struct("I60x")
"""The arguments of all calls; the lock's timeout is the first word."""
_DRIVERS: Final = range(CheckpointState.RUNS, CheckpointState.FAILED + 1)
_OLD: Final = "the driver has no checkpoints of processes; those from branch 570 on have them"


def opened(driver_root: str) -> ctypes.CDLL | str:
    """The driver, or why it can't be called."""
    path = file_below(driver_root, _LIBRARY) if driver_root.strip("/.") else _LIBRARY
    if path is None:
        return f"there is no {_LIBRARY} below {driver_root}"
    try:
        cuda = ctypes.CDLL(path)
    except OSError as error:
        return f"{path} cannot be loaded: {error}"
    if not all(hasattr(cuda, step) for step in Step):
        return _OLD
    if number := cuda.cuInit(0):
        return f"the driver does not start: CUDA's error {number}"
    state = ctypes.c_int(-1)
    looked: int = getattr(cuda, Step.LOOK)(ctypes.c_int(os.getpid()), ctypes.byref(state))
    return _OLD if looked == _NOT_SUPPORTED else cuda


def called(cuda: ctypes.CDLL, call: Call) -> Called:
    """Make a call, unless another process has reused the pid."""
    if start_of(call.pid) != call.start:
        return Called(0, CheckpointState.ENDED)
    number = 0
    if call.step is not Step.LOOK:
        wishes = _WISHES.pack(call.patience_ms)
        number = getattr(cuda, call.step)(ctypes.c_int(call.pid), wishes)
    state = ctypes.c_int(-1)
    looked: int = getattr(cuda, Step.LOOK)(ctypes.c_int(call.pid), ctypes.byref(state))
    if start_of(call.pid) != call.start:
        return Called(0, CheckpointState.ENDED)
    if looked:
        return Called(number or looked, CheckpointState.UNKNOWN)
    return Called(number, CheckpointState(state.value) if state.value in _DRIVERS else CheckpointState.FAILED)


def _session(driver_root: str, _: ctypes.CDLL, parent: Parent[Call, BrokerReport]) -> None:
    cuda = opened(driver_root)
    parent.tell(Opened(cuda[:LONGEST_WHY] if isinstance(cuda, str) else ""))
    while not isinstance(cuda, str) and (call := parent.asks()) is not None:
        parent.tell(called(cuda, call))


if __name__ == "__main__":
    live(sys.argv[1], WORDS, _session)
