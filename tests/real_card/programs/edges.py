"""Programs at the edge: all memory allocated, an exit without waiting, a context destroyed before its stream."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

from real_card.programs.answer import Absent, answer
from real_card.programs.driver import MIB, NOT_SUPPORTED, OUT_OF_MEMORY, Card, DriverError, Handle, with_locals
from real_card.programs.monitor import Monitor

STEPS = (512 * MIB, 64 * MIB, 2 * MIB)
LOCAL_BYTES = 8192
AT_ONCE = 4
MOST_S = 20.0


def fill(graphs: str = "500") -> dict[str, Any]:
    """Allocate everything; then run a kernel with 8 KiB of local memory, then graphs. Each is refused or succeeds."""
    card = Card()
    small, stream = card.function(), card.stream()
    card.launch(small, ctypes.c_uint64(1000))
    large, out = card.function("locals", with_locals(LOCAL_BYTES)), card.allocate(MIB)
    taken, refusal = 0, 0
    for step in STEPS:
        refusal = 0
        while not refusal:
            try:
                card.allocate(step)
                taken += step
            except DriverError as error:
                refusal = error.number
    told: dict[str, Any] = {"taken": taken, "refusal": refusal, "seen_total": card.room()[1]}
    told["locals"] = _outcome(lambda: _run_large(card, large, out))
    made = 0

    def one_more() -> None:
        nonlocal made
        for _ in range(int(graphs)):
            card.call("cuGraphLaunch", card.graph(small, 10), stream)
            made += 1
        card.synchronize()

    told["graphs"] = _outcome(one_more)
    monitor = Monitor()
    return {**told, "made": made, "shown": monitor.own_bytes(), "nvml_total": monitor.memory().total}


def _run_large(card: Card, large: Handle, out: ctypes.c_uint64) -> None:
    card.launch(large, ctypes.c_uint64(out.value), ctypes.c_uint32(4), blocks=256, threads=256)
    card.synchronize()


def _outcome(call: Any) -> str:
    try:
        call()
    except DriverError as error:
        return "out of memory" if error.number == OUT_OF_MEMORY else str(error)
    return "done"


def exits(count: str = "300") -> dict[str, Any]:
    """Run this many processes, some at once, that launch and exit without waiting; list failures. Fewer if slow."""
    running, bad, made, until = set[int](), list[int](), 0, time.monotonic() + MOST_S
    while made < int(count) and time.monotonic() < until:
        if len(running) == AT_ONCE:
            _reap(running, bad)
        pid = os.fork()
        if pid == 0:
            _launch_and_exit()
        running.add(pid)
        made += 1
    while running:
        _reap(running, bad)
    return {"exits": made, "bad": bad[:20]}


def _reap(running: set[int], bad: list[int]) -> None:
    pid, status = os.wait()
    running.discard(pid)
    if status:
        bad.append(os.waitstatus_to_exitcode(status))


def _launch_and_exit() -> None:
    """The exit of a C program: handlers and destructors run while kernels are in flight."""
    try:
        card = Card()
        function = card.function()
        for _ in range(20):
            card.launch(function, ctypes.c_uint64(500_000))
    except BaseException:  # noqa: BLE001  the status is all that the parent reads
        os._exit(9)
    ctypes.CDLL(None).exit(0)


def green() -> dict[str, Any]:
    """Destroy a green context while one of its streams has work; then use the primary context."""
    card = Card()
    if not card.has("cuGreenCtxCreate"):
        raise Absent("the driver has no green contexts")
    resource, description, made, stream = ctypes.create_string_buffer(512), Handle(), Handle(), Handle()
    if card.ask("cuDeviceGetDevResource", ctypes.c_int(0), resource, ctypes.c_int(1)) == NOT_SUPPORTED:
        description = Handle(ctypes.addressof(resource))  # a simulated card has no parts, and accepts any
    else:
        card.call("cuDevResourceGenerateDesc", ctypes.byref(description), resource, ctypes.c_uint(1))
    card.call("cuGreenCtxCreate", ctypes.byref(made), description, ctypes.c_int(0), ctypes.c_uint(1))
    card.call("cuGreenCtxStreamCreate", ctypes.byref(stream), made, ctypes.c_uint(1), ctypes.c_int(0))
    within = Handle()
    card.call("cuCtxFromGreenCtx", ctypes.byref(within), made)
    card.call("cuCtxSetCurrent", within)
    card.spin(20, stream=stream)
    card.call("cuCtxSetCurrent", card.context)
    destroyed = card.ask("cuGreenCtxDestroy", made)
    card.spin(1)
    after = card.ask("cuCtxSynchronize")
    capture, graph = card.stream(), Handle()
    function = card.function()
    card.call("cuStreamBeginCapture_v2", capture, ctypes.c_int(1))
    card.launch(function, ctypes.c_uint64(1000), stream=capture)
    captured = card.ask("cuStreamEndCapture", capture, ctypes.byref(graph))
    return {"destroyed": destroyed, "after": after, "captured": captured}


if __name__ == "__main__":
    sys.exit(answer({"fill": fill, "exits": exits, "green": green}))
