"""The driver's checkpoint of a process, called by another process: its duration, its leftovers, its refusals.

Lock, checkpoint, restore and unlock have a structure of 64 bytes for their options; only the lock's timeout is defined.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from real_card.programs.answer import Absent, answer
from real_card.programs.driver import MIB, NOT_SUPPORTED, Card, Driver, Pointer
from real_card.programs.monitor import Monitor

SIZES = (64 * MIB, 1024 * MIB, 8192 * MIB)
SMALL = 64 * MIB
WORD = 0x5A5A0001
KERNEL_MS, PATIENCE_MS, LONG_PATIENCE_MS = 800, 100, 10_000
GOES_ON_S = 30
STEPS = ("Lock", "Checkpoint", "Restore", "Unlock")


def hold(kind: str, length: str) -> dict[str, Any]:
    """Allocate memory of the kind and fill it; on a line of input verify it all, and measure that."""
    card, size, address = Card(), int(length), Pointer()
    function = card.function()
    if kind == "managed":
        card.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_uint(1))
    else:
        address = card.allocate(size)
    card.call("cuMemsetD32_v2", address, ctypes.c_uint(WORD), ctypes.c_size_t(size // 4))
    if kind == "exported":
        card.call("cuIpcGetMemHandle", ctypes.create_string_buffer(64), address)
    card.synchronize()
    if kind == "busy":
        card.launch(function, ctypes.c_uint64(KERNEL_MS * 1_000_000))
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.readline()
    begun = time.monotonic()
    card.launch(function, ctypes.c_uint64(1000))
    card.synchronize()
    return {"ms": _ms(begun), "right": _is_filled(card, address, size)}


def _is_filled(card: Card, address: Pointer, size: int) -> bool:
    part = ctypes.create_string_buffer(SMALL)
    wanted = struct.pack("I", WORD) * (SMALL // 4)
    for at in range(0, size, SMALL):
        card.call("cuMemcpyDtoH_v2", part, ctypes.c_uint64(address.value + at), ctypes.c_size_t(SMALL))
        if part.raw != wanted:
            return False
    return True


class _Process:
    """Another process that holds memory, and the driver's calls on it."""

    def __init__(self, driver: Driver, kind: str, size: int) -> None:
        argv = [sys.executable, "-m", "real_card.programs.checkpoint", "hold", kind, str(size)]
        self._driver = driver
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        if self.process.stdout.readline() != "held\n":
            raise OSError(f"a process that should hold {size} bytes, {kind}, has ended")

    def do(self, step: str, patience_ms: int = LONG_PATIENCE_MS) -> int:
        words = struct.pack("I60x", patience_ms if step == "Lock" else 0)
        return self._driver.ask(f"cuCheckpointProcess{step}", ctypes.c_int(self.process.pid), ctypes.c_char_p(words))

    def state(self) -> int:
        return _state(self._driver, self.process.pid)

    def resident(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

    def checked(self) -> dict[str, Any]:
        try:
            said, _ = self.process.communicate("go on\n", timeout=GOES_ON_S)
        except subprocess.TimeoutExpired:
            return {"right": False, "hangs": True}
        facts: dict[str, Any] = json.loads(said.splitlines()[-1])
        return facts

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def _state(driver: Driver, pid: int) -> int:
    """0: running; 1: locked; 2: checkpointed, off the card; less than 0: the driver's error."""
    state = ctypes.c_int(-1)
    number = driver.ask("cuCheckpointProcessGetState", ctypes.c_int(pid), ctypes.byref(state))
    return -number if number else state.value


def suspend() -> dict[str, Any]:
    driver, monitor = Driver(), Monitor()
    driver.start()
    if not driver.has("cuCheckpointProcessLock") or _state(driver, os.getpid()) == -NOT_SUPPORTED:
        raise Absent("the driver has no checkpoints of processes")
    return {
        "sizes": {str(size): _suspended(driver, monitor, size) for size in SIZES},
        "refused": {kind: _refused(driver, kind) for kind in ("managed", "exported")},
        "busy": _busy(driver),
        "killed": _killed(driver, monitor),
    }


def _suspended(driver: Driver, monitor: Monitor, size: int) -> dict[str, Any]:
    one = _Process(driver, "plain", size)
    try:
        told: dict[str, Any] = {"before": _seen(one, monitor)}
        for step in STEPS:
            begun = time.monotonic()
            number = one.do(step)
            told[step.lower()] = {"answer": number, "ms": _ms(begun), "state": one.state(), **_seen(one, monitor)}
            if number:
                return told
        return {**told, "after": one.checked()}
    finally:
        one.end()


def _seen(one: _Process, monitor: Monitor) -> dict[str, Any]:
    listed = monitor.processes()
    return {
        "listed": one.process.pid in listed,
        "bytes": listed.get(one.process.pid),
        "used": monitor.memory().used,
        "resident": one.resident(),
    }


def _refused(driver: Driver, kind: str) -> dict[str, Any]:
    """The answer of each step, as far as possible, and whether the process continues afterwards."""
    one, told = _Process(driver, kind, SMALL), dict[str, Any]()
    try:
        for step in STEPS:
            told[step.lower()] = one.do(step)
        if one.state():
            return {**told, "state": one.state()}
        return {**told, "after": one.checked()}
    finally:
        one.end()


def _busy(driver: Driver) -> dict[str, Any]:
    """A lock with a timeout shorter than the running kernel, then one with a longer timeout."""
    one = _Process(driver, "busy", SMALL)
    try:
        begun = time.monotonic()
        hasty = {"answer": one.do("Lock", PATIENCE_MS), "ms": _ms(begun), "state": one.state()}
        begun = time.monotonic()
        patient = {"answer": one.do("Lock"), "ms": _ms(begun), "state": one.state()}
        one.do("Unlock")
        return {"hasty": hasty, "patient": patient}
    finally:
        one.end()


def _killed(driver: Driver, monitor: Monitor) -> dict[str, Any]:
    """A process that is killed while it is suspended."""
    one = _Process(driver, "plain", SMALL)
    answers = [one.do("Lock"), one.do("Checkpoint")]
    begun = time.monotonic()
    one.end()
    return {"answers": answers, "ms": _ms(begun), "listed": one.process.pid in monitor.processes()}


def _ms(since: float) -> float:
    return round((time.monotonic() - since) * 1e3, 1)


if __name__ == "__main__":
    sys.exit(answer({"suspend": suspend, "hold": hold}))
