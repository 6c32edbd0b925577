"""Runs in a child process whose libcuda.so.1 is metered: the client of the memory tests, with launches.

Each call raises on an error of the driver. Nothing here depends on time slices.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from simgpu.memory import client
from simgpu.memory.client import INT, WORD, Said, call, cuda, plain, told

_driver = ctypes.CDLL(sys.argv[2])
NON_BLOCKING: Final = 1
LEGACY, PER_THREAD = 1, 2
MS: Final = 1_000_000
_contexts: list[int] = []
_kernels: dict[int, int] = {}


def past(name: str, *arguments: object) -> int:
    """Like `told`, but on the driver itself, which the program has loaded by its path."""
    value = WORD()
    if number := getattr(_driver, name)(ctypes.byref(value), *plain(arguments)):
        raise Said(number)
    return value.value


# ---- contexts and streams


def start() -> None:
    """Contexts on all cards; the first one's is current."""
    call("cuInit", 0)
    _contexts.extend(told("cuDevicePrimaryCtxRetain", device) for device in range(int(sys.argv[1])))
    if _contexts:
        use(0)


def use(card: int) -> None:
    """Make the card's context current in this thread."""
    call("cuCtxSetCurrent", _contexts[card])


def context() -> int:
    """A new context on the first card, now current."""
    return int(told("cuCtxCreate_v2", 0, 0))


def stream(flags: int = NON_BLOCKING) -> int:
    return int(told("cuStreamCreate", flags))


def kernel() -> int:
    """A kernel in the current context that runs as long as its first parameter says."""
    current = told("cuCtxGetCurrent")
    if current not in _kernels:
        module = told("cuModuleLoadData", b"anything")
        _kernels[current] = told("cuModuleGetFunction", module, b"sim_arg")
    return _kernels[current]


def launch(one: int = 0, ms: float = 0.1, *, name: str = "cuLaunchKernel") -> None:
    """Launch a kernel of this duration."""
    nanoseconds = WORD(int(ms * MS))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(nanoseconds))
    shape = [INT(1)] * 6 + [INT(0)]
    extra = [] if "Cooperative" in name else [None]
    call(name, kernel(), *shape, one, parameters, *extra)


class _Config(ctypes.Structure):
    _fields_ = (
        ("shape", ctypes.c_uint32 * 7),
        ("stream", ctypes.c_uint64),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
    )


class _Each(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_uint64),
        ("shape", ctypes.c_uint32 * 7),
        ("stream", ctypes.c_uint64),
        ("parameters", ctypes.c_void_p),
    )


_SHAPE: Final = (ctypes.c_uint32 * 7)(1, 1, 1, 1, 1, 1, 0)


def launch_with(name: str, one: int = 0, ms: float = 0.1) -> None:
    """The same, with a launch structure."""
    nanoseconds = WORD(int(ms * MS))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(nanoseconds))
    call(name, ctypes.byref(_Config(_SHAPE, one, None, 0)), kernel(), parameters, None)


def launch_each(cards: int = 1, ms: float = 0.1) -> None:
    """Launch one kernel on each of the first cards at once."""
    nanoseconds = WORD(int(ms * MS))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(nanoseconds))
    each = (_Each * cards)()
    for index in range(cards):
        use(index)
        each[index] = _Each(kernel(), _SHAPE, stream(), ctypes.addressof(parameters))
    use(0)
    call("cuLaunchCooperativeKernelMultiDevice", each, INT(cards), INT(0))


def launch_old(name: str, *arguments: object) -> None:
    """Launch by the API before CUDA 4, in which the function keeps its shape and parameters."""
    call("cuFuncSetBlockShape", kernel(), INT(1), INT(1), INT(1))
    call("cuParamSetv", kernel(), INT(0), ctypes.byref(WORD(MS)), INT(8))
    call(name, kernel(), *arguments)


def launches(count: int, one: int = 0, ms: float = 0.1, *, name: str = "cuLaunchKernel") -> None:
    for _ in range(count):
        launch(one, ms, name=name)


class Flood:
    """Kernels of a millisecond, launched one after the other on a thread."""

    def __init__(self, count: int, one: int) -> None:
        self._launched, self._began = 0, time.monotonic()
        self._count, self._stream = count, one
        self._thread = in_thread(self._launch)

    def in_flight(self) -> float:
        """Lower bound of launches in flight: at most one per elapsed millisecond has completed."""
        return self._launched - 1000 * (time.monotonic() - self._began)

    def join(self) -> None:
        self._thread.join()

    def _launch(self) -> None:
        for _ in range(self._count):
            launch(self._stream, 1)
            self._launched += 1


def is_busy(one: int = 0) -> bool:
    """Whether a stream has unfinished work."""
    return bool(cuda.cuStreamQuery(WORD(one)))


# ---- graphs


def begin_capture(one: int, mode: int = 0) -> None:
    call("cuStreamBeginCapture_v2", one, mode)


def end_capture(one: int) -> int:
    graph = WORD()
    call("cuStreamEndCapture", one, ctypes.byref(graph))
    return int(told("cuGraphInstantiateWithFlags", graph.value, 0))


def change_graph(executable: int, count: int, ms: float, one: int) -> None:
    """Make the graph launch this many kernels of this length."""
    graph = WORD()
    begin_capture(one)
    launches(count, one, ms)
    call("cuStreamEndCapture", one, ctypes.byref(graph))
    call("cuGraphExecUpdate_v2", executable, graph.value, ctypes.create_string_buffer(24))


def graph_of(count: int, ms: float, one: int) -> int:
    begin_capture(one)
    launches(count, one, ms)
    return end_capture(one)


def graph_launches(count: int, graph: int, one: int) -> None:
    for _ in range(count):
        call("cuGraphLaunch", graph, one)


def mark(one: int) -> int:
    event = int(told("cuEventCreate", 0))
    call("cuEventRecord", event, one)
    return event


def is_ahead(event: int) -> bool:
    """Whether work launched before the event is unfinished."""
    return bool(cuda.cuEventQuery(WORD(event)))


# ---- threads and processes


def in_thread(body: Callable[[], object]) -> threading.Thread:
    """Start it on a thread that computes on the first card."""

    def run() -> None:
        use(0)
        body()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def in_child(body: Callable[[], object]) -> int:
    """Result of the driver in a forked child: 0, or its error."""
    child = os.fork()
    if child == 0:
        status = 0
        try:
            body()
        except Said as said:
            status = min(said.number, 250)
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def exits_slowly(seconds: float) -> None:
    """Called before the driver is started: the process lives on for this long after the driver has shut itself down."""
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit(libc.usleep, WORD(int(seconds * 1_000_000)), None)


# ---- much at once, on threads that compute on the first card


def churn_streams() -> None:
    for turn in range(200):
        one = stream(turn % 2)
        launch(one, 0.2)
        call("cuStreamDestroy_v2", one)


def churn_contexts() -> None:
    for _ in range(30):
        one = context()
        launch(stream(), 0.2)
        launch(0, 0.2)
        call("cuCtxDestroy_v2", one)
        _kernels.pop(one)


def churn_graphs(wrong: list[int]) -> None:
    """Capture and launch; an error ends it and is added to `wrong`."""
    one = stream()
    try:
        for _ in range(30):
            graph = graph_of(3, 0.05, one)
            call("cuGraphLaunch", graph, one)
            call("cuGraphExecDestroy", graph)
    except Said as said:
        wrong.append(said.number)


def join_all() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client.main(vars(client) | globals())
