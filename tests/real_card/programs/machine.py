"""Questions about the card's state: its model, its settings, its processes, and the cost of queries."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

from real_card.programs.answer import Absent, answer
from real_card.programs.driver import Card, Driver
from real_card.programs.monitor import Monitor

PAGEABLE, HOST_TABLES, MANAGED, MAJOR, MINOR, MULTIPROCESSORS = 88, 100, 89, 75, 76, 16
ASKED = 50
SETTINGS = {
    "persistence": "nvmlDeviceGetPersistenceMode",
    "compute_mode": "nvmlDeviceGetComputeMode",
}


def card() -> dict[str, Any]:
    monitor, driver, cuda = Monitor(), Driver(), ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(cuda))
    return {
        "card": monitor.text("nvmlDeviceGetName"),
        "uuid": monitor.text("nvmlDeviceGetUUID"),
        "driver": monitor.driver_version(),
        "cuda": f"{cuda.value // 1000}.{cuda.value % 1000 // 10}",
        "capability": f"{driver.attribute(MAJOR)}.{driver.attribute(MINOR)}",
        "multiprocessors": driver.attribute(MULTIPROCESSORS),
        "memory_bytes": monitor.memory().total,
        "free_bytes": monitor.memory().free,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }


def state() -> dict[str, Any]:
    """State that must be the same after the run; settings that the driver does not report are null."""
    monitor = Monitor()
    told: dict[str, Any] = {name: monitor.number(function) for name, function in SETTINGS.items()}
    return {**told, "processes": len([pid for pid in monitor.processes() if pid != os.getpid()])}


def abilities() -> dict[str, Any]:
    driver = Driver()
    driver.start()
    names = {"pageable": PAGEABLE, "host_page_tables": HOST_TABLES, "concurrent_managed": MANAGED}
    return {name: bool(driver.attribute(number)) for name, number in names.items()}


def costs() -> dict[str, Any]:
    monitor, _ = Monitor(), Card()
    told = {}
    for name, call in (("processes", monitor.processes), ("memory", monitor.memory)):
        times = []
        for _n in range(ASKED):
            begun = time.perf_counter()
            call()
            times.append((time.perf_counter() - begun) * 1e3)
        told[f"{name}_ms"] = round(statistics.median(times), 3)
        told[f"{name}_most_ms"] = round(max(times), 3)
    return told


def smi() -> dict[str, Any]:
    """The card's memory and processes by NVIDIA's own program, beside this process's own view."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise Absent("nvidia-smi is not installed")
    holder = Card()
    holder.allocate(64 << 20)
    asked = ["--query-gpu=memory.total,memory.used", "--query-compute-apps=pid,used_memory"]
    form = "--format=csv,noheader,nounits"
    lines = [
        subprocess.run([program, each, form], capture_output=True, text=True, check=True).stdout.splitlines()
        for each in asked
    ]
    table = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    total, used = (int(each) for each in lines[0][0].split(","))
    pids = [int(line.split(",")[0]) for line in lines[1] if line.strip()]
    return {
        "total_mib": total,
        "used_mib": used,
        "seen_total_mib": holder.room()[1] >> 20,
        "others": len([pid for pid in pids if pid != os.getpid()]),
        "own": os.getpid() in pids,
        "table": table,
    }


if __name__ == "__main__":
    sys.exit(answer({"card": card, "state": state, "abilities": abilities, "costs": costs, "smi": smi}))
