"""The driver API in a child process: names for snippets (programs.py) besides those of the memory tests' client."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from simgpu.memory.client import call, cuda, kernel, launch, plain, start
from simgpu.memory.client import told as made

DEADLINE_S = 600.0


def ask(name: str, *arguments: object) -> int:
    """The result code of a function, also an error."""
    return int(getattr(cuda, name)(*plain(arguments)))


def last(name: str, *arguments: object, kind: Any = ctypes.c_uint64) -> Any:
    """The value that a function writes to its last argument."""
    value = kind()
    call(name, *arguments, ctypes.byref(value))
    return value.value


def begin(device: int = 0) -> int:
    """Use a device in this thread; return its context."""
    start(device)
    return int(made("cuCtxGetCurrent"))


def launching(function: int, where: int = 0, suffix: str = "") -> int:
    """The result code, also an error."""
    return ask(f"cuLaunchKernel{suffix}", function, 1, 1, 1, 1, 1, 1, 0, where, None, None)


def event(flags: int = 0) -> int:
    return int(made("cuEventCreate", flags))


def recorded(where: int = 0, suffix: str = "") -> int:
    """A new event, recorded in a stream."""
    one = event()
    call(f"cuEventRecord{suffix}", one, where)
    return one


def elapsed(first: int, second: int) -> float:
    """Milliseconds between two events, once both are done."""
    call("cuEventSynchronize", first)
    call("cuEventSynchronize", second)
    return float(made("cuEventElapsedTime", first, second, kind=ctypes.c_float))


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it never came true")
        time.sleep(0.001)


HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


class Gate:
    """A host function that returns only when the gate is opened."""

    def __init__(self) -> None:
        self.entered, self._opened = threading.Event(), threading.Event()
        self.function = HOST_FUNCTION(self._wait)

    def _wait(self, _: object) -> None:
        self.entered.set()
        self._opened.wait(DEADLINE_S)

    def open(self) -> None:
        self._opened.set()

    def close(self, where: int) -> None:
        call("cuLaunchHostFunc", where, self.function, None)


# ---- capture and graphs


def capture(where: int, mode: int = 0) -> None:
    call("cuStreamBeginCapture_v2", where, mode)


def captured(where: int) -> int:
    """End a capture; return its graph."""
    return int(last("cuStreamEndCapture", where))


def executable(graph: int) -> int:
    return int(made("cuGraphInstantiateWithFlags", graph, 0))


class KernelParams(ctypes.Structure):
    """The first version: no kernel handle."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("shape", ctypes.c_uint * 7),
        ("params", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
    ]


def handles(*each: int) -> Any:
    return (ctypes.c_uint64 * len(each))(*each)


def kernel_node(graph: int, name: str, *before: int) -> int:
    """A node that runs a kernel of this name after others."""
    params = KernelParams(kernel(name), (1, 1, 1, 1, 1, 1, 0))
    return int(made("cuGraphAddKernelNode", graph, handles(*before), len(before), ctypes.byref(params)))


def run_of(graph_or_executable: int, where: int, *, instantiated: bool = False) -> float:
    """Milliseconds of one launch; enqueued while the stream is busy, so that this program's speed does not matter."""
    launch("sim_300ms", where)
    one = graph_or_executable if instantiated else executable(graph_or_executable)
    call("cuGraphLaunch", one, where)
    first = recorded(where)
    call("cuGraphLaunch", one, where)
    return elapsed(first, recorded(where))


def tell(answer: object) -> None:
    """Report to the test."""
    sys.stdout.write(json.dumps(["ok", answer]) + "\n")
    sys.stdout.flush()
