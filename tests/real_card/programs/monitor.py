"""NVML by ctypes: the driver's facts about the card that CUDA counts first."""

from __future__ import annotations

import ctypes
import os

from real_card.programs.driver import Driver

LIBRARY = "libnvidia-ml.so.1"
UNKNOWN = 2**64 - 1
MOST = 256


class Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Monitor:
    """NVML's handle of the first card; CUDA is started, but has no context yet."""

    def __init__(self) -> None:
        driver, bus = Driver(), ctypes.create_string_buffer(32)
        driver.start()
        driver.call("cuDeviceGetPCIBusId", bus, ctypes.c_int(32), ctypes.c_int(0))
        self.nvml, self.card = ctypes.CDLL(LIBRARY), ctypes.c_void_p()
        self._check("nvmlInit_v2", self.nvml.nvmlInit_v2())
        found = self.nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(self.card))
        self._check("nvmlDeviceGetHandleByPciBusId_v2", found)

    def _check(self, name: str, number: int) -> None:
        if number:
            raise OSError(f"{name} answered {number}")

    def text(self, name: str) -> str:
        told = ctypes.create_string_buffer(128)
        self._check(name, getattr(self.nvml, name)(self.card, told, ctypes.c_uint(len(told))))
        return told.value.decode()

    def number(self, name: str) -> int | None:
        """None: the driver does not report it, or lacks the function."""
        told = ctypes.c_int(-1)
        if not hasattr(self.nvml, name) or getattr(self.nvml, name)(self.card, ctypes.byref(told)):
            return None
        return told.value

    def driver_version(self) -> str:
        told = ctypes.create_string_buffer(96)
        self._check("nvmlSystemGetDriverVersion", self.nvml.nvmlSystemGetDriverVersion(told, ctypes.c_uint(96)))
        return told.value.decode()

    def processes(self) -> dict[int, int | None]:
        """Bytes by pid; None: NVML reports no amount."""
        room, count = (Process * MOST)(), ctypes.c_uint(MOST)
        self._check(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(self.card, ctypes.byref(count), room),
        )
        return {each.pid: None if each.bytes == UNKNOWN else each.bytes for each in room[: count.value]}

    def own_bytes(self) -> int | None:
        return self.processes().get(os.getpid())

    def memory(self) -> Memory:
        told = Memory()
        self._check("nvmlDeviceGetMemoryInfo", self.nvml.nvmlDeviceGetMemoryInfo(self.card, ctypes.byref(told)))
        return told
