"""Runs in a child process: calls every function of pynvml for every card, with a guard page behind each output.

Whatever pynvml passes by reference is moved to the end of a page that is followed by an inaccessible one, and back
after the call. A library that writes beyond the caller's struct crashes the process. The output is JSON: the result of
each function, for each card.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import mmap
import sys
from collections.abc import Callable, Iterator
from typing import Any

from simgpu.nvml.child import answered, plain

pynvml: Any = importlib.import_module("pynvml")  # on the path of this process alone

_PAGE = mmap.PAGESIZE
_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NOT_CALLS = {"nvmlStructToFriendlyObject", "nvmlFriendlyObjectToStruct", "nvmlExceptionClass"}
LIFE = {"nvmlInit", "nvmlInitWithFlags", "nvmlShutdown"}
"""Called explicitly, around the others."""


class Hole:
    """Pages that end before an inaccessible one."""

    def __init__(self, size: int) -> None:
        pages = -(-size // _PAGE)
        self._map = mmap.mmap(-1, (pages + 1) * _PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        end = start + pages * _PAGE
        assert _libc.mprotect(end, _PAGE, _PROT_NONE) == 0
        self.address = end - size


class Guarded:
    """A function whose references point to the ends of pages."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_function":
            super().__setattr__(name, value)
        else:
            setattr(self._function, name, value)

    def __call__(self, *arguments: Any) -> Any:
        moved: list[tuple[Any, Hole]] = []
        passed: list[Any] = []
        for argument in arguments:
            original = referenced(argument)
            if original is None:
                passed.append(argument)
                continue
            hole = Hole(ctypes.sizeof(original))
            ctypes.memmove(hole.address, ctypes.addressof(original), ctypes.sizeof(original))
            moved.append((original, hole))
            passed.append(ctypes.c_void_p(hole.address))
        result = self._function(*passed)
        for original, hole in moved:
            ctypes.memmove(ctypes.addressof(original), hole.address, ctypes.sizeof(original))
        return result


def referenced(argument: Any) -> Any:
    """The object passed by reference, if any."""
    if type(argument).__name__ == "CArgObject":
        return argument._obj
    if isinstance(argument, (ctypes.Array, ctypes.Structure)):
        return argument
    if type(argument).__name__.startswith("LP_") and bool(argument) and ctypes.sizeof(argument.contents) > 0:
        return argument.contents  # an object without a size is a handle
    return None


def guard_all() -> None:
    """Guard all later calls of pynvml."""
    find: Callable[[str], Any] = pynvml._nvmlGetFunctionPointer
    pynvml._nvmlGetFunctionPointer = lambda name: Guarded(find(name))


def functions() -> Iterator[tuple[str, Any]]:
    """The public API, except for initialisation and shutdown."""
    for name, function in sorted(vars(pynvml).items()):
        is_ours = inspect.isfunction(function) and name.startswith("nvml")
        if is_ours and name not in NOT_CALLS | LIFE:
            yield name, function


NUMBERS = """
vgpuTypeId link profileId mode unit type timeStamp counter index version capability pid fan counterType state profile
sensor errorType model flags scope threshold enabled minMemClockMHz maxMemClockMHz timeoutms timeoutMs status apiType
gpuInstanceId offset settings infoRomObject id memoryClockMHz fanControlPolicy temp locationType color minGpuClockMHz
maxGpuClockMHz maxGraphicsClockMHz limit isRestricted sampling_type perfPolicyType cpuNumber level freeze reset speed
newState virtualization_mode encoder_capacity p2pIndex encoderQueryType engProfile computeInstanceId sensorindex pstate
clockType powerScope powerLimit max_atk_adv result vgpuInstance nvmlErrorCode eventDataSize c_ccMemSize sourceFilter
"""
"""Parameters for which 0 is valid."""


class World:
    """Arguments for one device, by pynvml's parameter names."""

    def __init__(self, device: Any) -> None:
        handles = "handle device handle1 handle2 device1 device2 migDevice"
        self._device = device
        self._known: dict[str, Any] = dict.fromkeys(NUMBERS.split(), 0)
        self._known |= dict.fromkeys(handles.split(), device)
        self._known |= dict.fromkeys(("uuid", "pciBusId", "serial"), pynvml.nvmlDeviceGetUUID(device))
        self._known |= {"cpuSetSize": 16, "nodeSetSize": 16, "fieldIds": list(range(310)), "eventTypes": 8}
        if instances := list(gpu_instances(device)):
            self._known["gpuInstance"] = instances[0]

    def argument(self, name: str) -> Any:
        """A sensible value, or space for any."""
        if name in {"eventSet", "setHandle"}:
            return pynvml.nvmlEventSetCreate()  # each its own: one of the functions frees it
        return self._known.get(name, ctypes.create_string_buffer(1 << 16))

    def arguments(self, function: Any) -> list[Any]:
        """Arguments for all required parameters."""
        if function is pynvml.nvmlDeviceGetRunningProcessDetailList:
            return [self._device, pynvml.nvmlProcessDetailList_v1, pynvml.NVML_PROCESS_MODE_COMPUTE]
        parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
        return [self.argument(one.name) for one in parameters if one.default is one.empty]


def gpu_instances(device: Any) -> Iterator[Any]:
    """Those of a card in MIG mode."""
    for number in range(20):
        try:
            yield pynvml.nvmlDeviceGetGpuInstanceById(device, number)
        except pynvml.NVMLError:
            continue


def devices() -> Iterator[Any]:
    """All cards, and all MIG instances."""
    for index in range(pynvml.nvmlDeviceGetCount()):
        device = pynvml.nvmlDeviceGetHandleByIndex(index)
        yield device
        for instance in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(device)):
            try:
                yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, instance)
            except pynvml.NVMLError:
                break


def called(device: Any) -> dict[str, tuple[str, object]]:
    """The result of every function for this device."""
    world, said = World(device), {}
    for name, function in functions():
        print(name, file=sys.stderr, flush=True)  # noqa: T201 (the last one, if the process dies)
        names = {"NVMLError": pynvml.NVMLError, "call": function, "world": world}
        said[name] = answered("call(*world.arguments(call))", names)
    return said


def main() -> None:
    pynvml.nvmlInit()
    guard_all()
    found = {str(plain(pynvml.nvmlDeviceGetUUID(device))): called(device) for device in devices()}
    pynvml.nvmlShutdown()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
