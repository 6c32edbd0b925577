"""Questions about memory that a card uses beside programs' allocations, and when it is freed."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from real_card.programs.answer import Absent, answer
from real_card.programs.driver import MIB, NOT_SUPPORTED, SPIN, SWEEP, Card, Handle, Pointer, with_globals, with_locals
from real_card.programs.monitor import Monitor

MOMENTS_MS = (0, 10, 50, 100, 500)
LOCALS = (1024, 4096, 16384)
LARGE = 64 * MIB
MANAGED_BYTES = 64 * MIB
HELD = 1024 * MIB
PATIENCE_S = 10.0
MOVED = 2048 * MIB
HOST = -1
PAGE = ctypes.c_size_t(4096)


def contexts() -> dict[str, Any]:
    """Whether NVML lists a process by its pid, and with how much, at several times after its first context was made."""
    monitor = Monitor()
    Card()
    made, told = time.monotonic(), dict[str, Any]()
    for moment in MOMENTS_MS:
        time.sleep(max(0.0, made + moment / 1e3 - time.monotonic()))
        told[f"{moment} ms"] = monitor.own_bytes()
    return {"listed": os.getpid() in monitor.processes(), "bytes": told}


def local_memory() -> dict[str, Any]:
    """Decrease of free memory after kernels with this much local memory per thread have run."""
    card, told = Card(), dict[str, int]()
    out = card.allocate(MIB)
    card.spin(0.01)
    card.synchronize()
    for size in LOCALS:
        function, before = card.function("locals", with_locals(size)), card.room()[0]
        card.launch(function, ctypes.c_uint64(out.value), ctypes.c_uint32(4), blocks=256, threads=256)
        card.synchronize()
        told[str(size)] = before - card.room()[0]
    return {"grown": told}


def code() -> dict[str, Any]:
    """The memory for loading 64 MiB of variables: at the load, and at the first launch.

    CUDA_MODULE_LOADING decides which.
    """
    card = Card()
    before = card.room()[0]
    function = card.function("touch", with_globals(LARGE))
    loaded = card.room()[0]
    card.launch(function, ctypes.c_uint32(1))
    card.synchronize()
    return {"loaded": before - loaded, "launched": loaded - card.room()[0]}


def eager_and_lazy() -> dict[str, Any]:
    told = {}
    for how in ("LAZY", "EAGER"):
        argv = [sys.executable, "-m", "real_card.programs.memory", "code"]
        environment = {**os.environ, "CUDA_MODULE_LOADING": how}
        said = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        told[how.lower()] = json.loads(said.splitlines()[-1])
    return told


def graphs(count: str = "1000") -> dict[str, Any]:
    card = Card()
    function, stream = card.function("sim_arg", SPIN), card.stream()
    card.launch(function, ctypes.c_uint64(1000))
    card.synchronize()
    before, made = card.room()[0], []
    for _ in range(int(count)):
        made.append(card.graph(function, 10))
        card.call("cuGraphLaunch", made[-1], stream)
    card.synchronize()
    grown = before - card.room()[0]
    for executable in made:
        card.call("cuGraphExecDestroy", executable)
    card.synchronize()
    return {"graphs": len(made), "grown": grown, "left": before - card.room()[0]}


def managed() -> dict[str, Any]:
    """Whether NVML counts managed memory, by process and as used: allocated, touched by the card, moved to the host."""
    monitor, card, address = Monitor(), Card(), Pointer()
    length, told = ctypes.c_size_t(MANAGED_BYTES), dict[str, Any]()
    before = monitor.own_bytes() or 0, monitor.memory().used
    for name, function, arguments in (
        ("taken", "cuMemAllocManaged", (ctypes.byref(address), length, ctypes.c_uint(1))),
        ("touched", "cuMemsetD8_v2", (address, ctypes.c_ubyte(1), length)),
        ("gone", "cuMemPrefetchAsync", (address, length, ctypes.c_int(HOST), None)),
    ):
        told[f"{name}_answer"] = card.ask(function, *arguments)
        card.synchronize()
        told[name], told[f"{name}_used"] = (monitor.own_bytes() or 0) - before[0], monitor.memory().used - before[1]
    return told


def moves() -> dict[str, Any]:
    """The speed of managed memory's moves, in GB/s, by prefetch and by faults; beside it the link's bandwidth."""
    card, address, pinned = Card(), Pointer(), Handle()
    sweep, out, bare = card.function("sweep", SWEEP), card.allocate(MIB), card.allocate(MOVED)
    card.call("cuMemHostAlloc", ctypes.byref(pinned), ctypes.c_size_t(MOVED), ctypes.c_uint(0))
    card.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(MOVED), ctypes.c_uint(1))

    def read() -> None:
        values = (ctypes.c_uint64(each) for each in (address.value, MOVED // 8, out.value))
        card.launch(sweep, *values, blocks=1056, threads=256)

    def prefetch(place: int) -> None:
        card.call("cuMemPrefetchAsync", address, ctypes.c_size_t(MOVED), ctypes.c_int(place), None)

    length = ctypes.c_size_t(MOVED)
    steps: Sequence[tuple[str, Callable[[], Any]]] = (
        ("first touch", lambda: card.call("cuMemsetD8_v2", address, ctypes.c_ubyte(1), length)),
        ("read where it is", read),
        ("prefetched to the host", lambda: prefetch(HOST)),
        ("prefetched to the card", lambda: prefetch(0)),
        ("prefetched to the host again", lambda: prefetch(HOST)),
        ("faults of the card", read),
        ("faults of the host", lambda: ctypes.memset(address.value, 2, MOVED)),
        ("faults of the card again", read),
        ("link to the card", lambda: card.call("cuMemcpyHtoD_v2", bare, pinned, length)),
        ("link to the host", lambda: card.call("cuMemcpyDtoH_v2", pinned, bare, length)),
    )
    told = {}
    if card.ask("cuMemPrefetchAsync", address, PAGE, ctypes.c_int(HOST), None) == NOT_SUPPORTED:
        raise Absent("the driver does not prefetch managed memory")
    card.synchronize()
    for name, step in steps:
        begun = time.monotonic()
        step()
        card.synchronize()
        told[name] = round(MOVED / (time.monotonic() - begun) / 1e9, 2)
    return told


def managed_pool() -> dict[str, Any]:
    """A managed memory pool (CUDA 13.0): whether an allocation of 64 MiB lowers the visible free memory."""
    card, pool, address = Card(), Handle(), Pointer()
    stream, before = card.stream(), card.room()[0]
    managed_type, device_location = 2, 1
    properties = struct.pack("iiiiQQH54x", managed_type, 0, device_location, 0, 0, 0, 0)
    number = card.ask("cuMemPoolCreate", ctypes.byref(pool), ctypes.c_char_p(properties.ljust(128, b"\0")))
    if number:
        return {"made": False, "answer": number}
    taken = card.ask("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(MANAGED_BYTES), pool, stream)
    card.synchronize()
    lowered = before - card.room()[0]
    if not taken:
        card.call("cuMemsetD8_v2", address, ctypes.c_ubyte(1), ctypes.c_size_t(MANAGED_BYTES))
        card.synchronize()
    return {"made": True, "answer": taken, "lowered": lowered}


def managed_limit() -> dict[str, Any]:
    """Allocate more managed memory than the limit, in a container."""
    card, address = Card(), Pointer()
    asked = card.room()[1] + MANAGED_BYTES
    answer = card.ask("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(asked), ctypes.c_uint(1))
    return {"asked": asked, "answer": answer}


def hold(kind: str = "plain") -> dict[str, Any]:
    """Allocate a GiB, write it on the card, report it, and wait for a signal."""
    card, address = Card(), Pointer()
    if kind == "managed":
        card.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(HELD), ctypes.c_uint(1))
    else:
        address = card.allocate(HELD)
    card.call("cuMemsetD8_v2", address, ctypes.c_ubyte(1), ctypes.c_size_t(HELD))
    card.synchronize()
    sys.stdout.write("held\n")
    sys.stdout.flush()
    signal.pause()
    return {}


def death(kind: str = "plain") -> dict[str, Any]:
    """How long NVML still lists a killed process, and counts its memory as used."""
    monitor = Monitor()
    before = monitor.memory().used
    argv = [sys.executable, "-m", "real_card.programs.memory", "hold", kind]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        held = monitor.memory().used - before
        holder.kill()
        killed = time.monotonic()
        holder.wait()
    times: dict[str, float | None] = {"ended": _ms(killed), "unlisted": None, "free": None}
    while time.monotonic() - killed < PATIENCE_S and None in times.values():
        if times["unlisted"] is None and holder.pid not in monitor.processes():
            times["unlisted"] = _ms(killed)
        if times["free"] is None and monitor.memory().used - before < HELD // 2:
            times["free"] = _ms(killed)
        time.sleep(0.001)
    return {"held": held, "ms": times}


def _ms(since: float) -> float:
    return round((time.monotonic() - since) * 1e3, 1)


if __name__ == "__main__":
    sys.exit(
        answer(
            {
                "contexts": contexts,
                "locals": local_memory,
                "code": code,
                "loading": eager_and_lazy,
                "graphs": graphs,
                "managed": managed,
                "moves": moves,
                "managed-pool": managed_pool,
                "managed-limit": managed_limit,
                "hold": hold,
                "death": death,
            }
        )
    )
