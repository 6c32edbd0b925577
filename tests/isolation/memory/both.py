"""The client of the memory tests, with NVML beside it: a card as programs see it by both."""

from __future__ import annotations

import importlib
from typing import Any

from simgpu.memory import client

nvml: Any = importlib.import_module("pynvml")


def begin() -> None:
    nvml.nvmlInit()


def card(index: int = 0) -> Any:
    return nvml.nvmlDeviceGetHandleByIndex(index)


def memory(index: int = 0) -> tuple[int, int, int]:
    info = nvml.nvmlDeviceGetMemoryInfo(card(index))
    return info.total, info.used, info.free


def memory_v2(index: int = 0) -> tuple[int, int, int, int]:
    """Total, reserved, used and free."""
    info = nvml.nvmlDeviceGetMemoryInfo(card(index), version=nvml.nvmlMemory_v2)
    return info.total, info.reserved, info.used, info.free


LISTS = {
    "compute": nvml.nvmlDeviceGetComputeRunningProcesses_v3,
    "compute v2": nvml.nvmlDeviceGetComputeRunningProcesses_v2,
    "graphics": nvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
    "mps": nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
}


def pids(which: str, index: int = 0) -> list[tuple[int, int]]:
    return [(one.pid, one.usedGpuMemory) for one in LISTS[which](card(index))]


def details(mode: int, index: int = 0) -> list[int]:
    """Pids in the list of all kinds."""
    found = nvml.nvmlDeviceGetRunningProcessDetailList(card(index), nvml.nvmlProcessDetailList_v1, mode)
    return [one.pid for one in found]


def busy() -> list[int]:
    """Pids of the processes that were busy lately."""
    try:
        return [one.pid for one in nvml.nvmlDeviceGetProcessUtilization(card(), 0)]
    except nvml.NVMLError_NotFound:
        return []


def failure(line: str) -> int:
    try:
        eval(line, vars(client) | globals())  # noqa: S307
    except nvml.NVMLError as error:
        return int(error.value)
    return 0


if __name__ == "__main__":
    client.main(vars(client) | globals())
