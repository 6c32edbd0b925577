"""The interface to NVML: every query, with plain values as results. Used only in the child process.

Every call passes through one gate, which converts NVML's errors to `NvmlError` and reports that the call has returned.
Errors are interpreted elsewhere.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, NewType, TypeVar

from partage_gpu.nvml.libraries import NoDriver, kind_of

pynvml: Any = importlib.import_module("pynvml")  # it has no types
Handle = NewType("Handle", object)
"""A card or an instance, valid for the life of this process."""
EventSet = NewType("EventSet", object)

NOT_SUPPORTED: Final = 3
NOT_FOUND: Final = 6
TIMEOUT: Final = 10
LOST: Final = frozenset((15, 16))
"""GPU_IS_LOST and RESET_REQUIRED: for any query, the card can't be used."""
_T = TypeVar("_T")
_FIELD: Final = struct.Struct("=24xIIQ")
"""The type, NVML's result and the value in a field's 40 bytes. pynvml's attributes are ten times as slow."""
_MASKS: Final = (0, 0xFFFFFFFF, (1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1, 0xFFFFFFFF, 0xFFFF)
"""Masks for a value's bits, by its type; the first type is floating point, which none of our fields has."""


class NvmlError(Exception):
    """NVML returned an error."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(f"{words} ({number})")
        self.number = number


class Memory(NamedTuple):
    """Memory of a card or an instance, in bytes."""

    total: int
    reserved: int
    used: int


class LinkEnd(NamedTuple):
    """The end of a link: the address of a card, or None for a switch."""

    pci: str | None


class Gate:
    """Makes all calls; `returned` is called after each, regardless of its result."""

    def __init__(self) -> None:
        self.returned: Callable[[], None] = lambda: None  # until a session begins

    def __call__(self, function: Callable[..., _T], *arguments: object) -> _T:
        """The result of one call; raises `NvmlError`."""
        try:
            return function(*arguments)
        except pynvml.NVMLError as error:
            raise NvmlError(error.value, str(error)) from None
        except UnicodeDecodeError as error:
            raise NvmlError(0, f"its answer is no text: {error}") from None
        finally:
            self.returned()


gate: Final = Gate()


def optional(read: Callable[[Handle], _T], handle: Handle) -> _T | None:
    """The result, or None if the card or driver does not support the query; a lost card still raises."""
    try:
        return read(handle)
    except NvmlError as refused:
        if refused.number in LOST:
            raise
        return None


def of_node(read: Callable[[], _T]) -> _T:
    """The result of a query that every driver supports; an error means that the driver is gone."""
    try:
        return read()
    except NvmlError as refused:
        raise NoDriver(kind_of(refused.number), f"NVML does not answer any more: {refused}") from refused


# ---- The node --------------------------------------------------------------------------------------------------------


def attach() -> None:
    """Attaches to the library; called once, after it was loaded and initialised."""
    gate(pynvml.nvmlInit)


def driver_version() -> str:
    return str(gate(pynvml.nvmlSystemGetDriverVersion))


def cuda_version() -> str:
    """The highest version that the driver supports, as `13.0`."""
    number = int(gate(pynvml.nvmlSystemGetCudaDriverVersion_v2))
    return f"{number // 1000}.{number % 1000 // 10}"


def count() -> int:
    """The number of cards that NVML found when it was initialised."""
    return int(gate(pynvml.nvmlDeviceGetCount))


def card(index: int) -> Handle:
    return Handle(gate(pynvml.nvmlDeviceGetHandleByIndex, index))


# ---- A card ----------------------------------------------------------------------------------------------------------


def uuid(handle: Handle) -> str:
    """Of a card or an instance."""
    return str(gate(pynvml.nvmlDeviceGetUUID, handle))


def name(handle: Handle) -> str:
    """The model's name; for an instance, followed by its profile."""
    return str(gate(pynvml.nvmlDeviceGetName, handle))


def minor(handle: Handle) -> int:
    return int(gate(pynvml.nvmlDeviceGetMinorNumber, handle))


def memory(handle: Handle) -> Memory:
    """Total, reserved by the driver, and used; drivers before 510 include the reserved memory in the used."""
    try:
        found = gate(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
        return Memory(found.total, found.reserved, found.used)
    except NvmlError as refused:
        if refused.number in LOST:
            raise
        found = gate(pynvml.nvmlDeviceGetMemoryInfo, handle)
        return Memory(found.total, 0, found.used)


def tells_use(handle: Handle) -> bool | None:
    """Whether it reports the memory of each process; None if no process runs on it."""
    try:
        listed = gate(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    except NvmlError as refused:
        if refused.number == NOT_SUPPORTED:
            return False
        raise
    return any(one.usedGpuMemory is not None for one in listed) if listed else None


def capability(handle: Handle) -> str:
    major, minor_part = gate(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return f"{major}.{minor_part}"


def pci(handle: Handle) -> str:
    """Its address as the kernel writes it."""
    return _address(gate(pynvml.nvmlDeviceGetPciInfo, handle))


def numa_node(handle: Handle) -> int | None:
    """The nearest NUMA node."""
    words = gate(pynvml.nvmlDeviceGetMemoryAffinity, handle, 16, pynvml.NVML_AFFINITY_SCOPE_NODE)
    nodes = sum(int(word) << 64 * place for place, word in enumerate(words))
    return (nodes & -nodes).bit_length() - 1 if nodes else None


def pcie_generation(handle: Handle) -> int:
    """The highest that card and slot support together, regardless of power saving at rest."""
    return int(gate(pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle))


def are_behind_one_switch(one: Handle, other: Handle) -> bool:
    """Whether there are only PCIe switches between two cards, and no host bridge of a processor."""
    level = int(gate(pynvml.nvmlDeviceGetTopologyCommonAncestor, one, other))
    return level <= int(pynvml.NVML_TOPOLOGY_MULTIPLE)


def fields(handle: Handle, numbers: Sequence[int]) -> list[int | None]:
    """Values by number, in one call; None where the card does not support a field."""
    packed = bytes(gate(pynvml.nvmlDeviceGetFieldValues, handle, numbers))
    found = list(_FIELD.iter_unpack(packed))
    lost = next((result for _, result, _ in found if result in LOST), None)
    if lost is not None:
        raise NvmlError(lost, str(pynvml.NVMLError(lost)))
    return [value & _MASKS[kind] if result == 0 and kind < len(_MASKS) else None for kind, result, value in found]


def utilisation(handle: Handle) -> float:
    """The fraction of the last sample period in which a kernel ran."""
    return float(gate(pynvml.nvmlDeviceGetUtilizationRates, handle).gpu) / 100


def temperature(handle: Handle) -> float:
    return float(gate(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU))


def power(handle: Handle) -> float:
    return float(gate(pynvml.nvmlDeviceGetPowerUsage, handle)) / 1000


# ---- MIG -------------------------------------------------------------------------------------------------------------


def is_mig(handle: Handle) -> bool:
    """Whether it is in MIG mode now."""
    return bool(gate(pynvml.nvmlDeviceGetMigMode, handle)[0])


def instances(handle: Handle) -> list[Handle]:
    """The existing instances; their indices may have gaps."""
    found: list[Handle] = []
    for place in range(int(gate(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle))):
        try:
            found.append(Handle(gate(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)))
        except NvmlError as refused:
            if refused.number != NOT_FOUND:
                raise
    return found


def slices(instance: Handle) -> tuple[int, int, int]:
    """Of the card's processors the slices for compute and all slices, and its memory in MiB."""
    found = gate(pynvml.nvmlDeviceGetAttributes_v2, instance)
    return found.computeInstanceSliceCount, found.gpuInstanceSliceCount, found.memorySizeMB


# ---- NVLink ----------------------------------------------------------------------------------------------------------


def link_ends(handle: Handle) -> list[LinkEnd]:
    """The ends of active links, without those to a processor."""
    ends = (optional(partial(_link_end, link), handle) for link in range(_links(handle)))
    return [end for end in ends if end is not None]


def _links(handle: Handle) -> int:
    number = fields(handle, [pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT])[0]
    return min(number or 0, int(pynvml.NVML_NVLINK_MAX_LINKS))


def _link_end(link: int, handle: Handle) -> LinkEnd | None:
    if not gate(pynvml.nvmlDeviceGetNvLinkState, handle, link):
        return None
    kind = gate(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
    if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
        return LinkEnd(None)
    if kind != pynvml.NVML_NVLINK_DEVICE_TYPE_GPU:
        return None
    return LinkEnd(_address(gate(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)))


# ---- Events ----------------------------------------------------------------------------------------------------------


def event_set() -> EventSet:
    """Creates a set that is registered for no events yet."""
    return EventSet(gate(pynvml.nvmlEventSetCreate))


def free(events: EventSet) -> None:
    """Frees the set."""
    gate(pynvml.nvmlEventSetFree, events)


def register_xids(handle: Handle, events: EventSet) -> bool:
    """Registers the set for the driver's errors of this card; False if the card has no such events."""
    wanted = gate(pynvml.nvmlDeviceGetSupportedEventTypes, handle) & pynvml.nvmlEventTypeXidCriticalError
    if wanted:
        gate(pynvml.nvmlDeviceRegisterEvents, handle, wanted, events)
    return bool(wanted)


def wait(events: EventSet, timeout_ms: int) -> tuple[int, int] | None:
    """The next XID with the address of its card's handle (see `address`); None if there was none in time."""
    try:
        event = gate(pynvml.nvmlEventSetWait_v2, events, timeout_ms)
    except NvmlError as refused:
        if refused.number == TIMEOUT:
            return None
        raise
    return address(event.device), int(event.eventData)


def address(handle: Any) -> int:  # noqa: ANN401  pynvml's, as the one below
    """A value that is equal for two handles of the same card."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


# ---- Plain values ----------------------------------------------------------------------------------------------------


def _address(info: Any) -> str:  # noqa: ANN401
    return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"
