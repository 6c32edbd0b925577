"""The driver API by ctypes: enough to allocate memory and run kernels, for tests and demonstrations.

    with Cuda() as card:
        address = card.allocate(64 << 20)
        card.launch(duration_ns=1_000_000)
        card.synchronize()

It loads the driver by name, as any program does, so LD_LIBRARY_PATH must be set before the process starts. A forked
child must not use it.
"""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Final, NamedTuple, Self

from partage_simgpu.errors import SimulationError

DRIVER: Final = "libcuda.so.1"
_TIMED: Final = b"sim_arg"
"""The simulated kernel whose duration is its parameter."""
_IMAGE: Final = b".version 8.0\n.target sm_70\n.visible .entry sim_arg() { ret; }\n"
_NON_BLOCKING: Final = 1


class CudaError(SimulationError):
    """A driver call failed; `number` is the CUresult."""

    def __init__(self, call: str, number: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({number})")
        self.call, self.number, self.name = call, number, name


class Room(NamedTuple):
    """Memory of a card, as reported to a program."""

    free_bytes: int
    total_bytes: int


class Cuda:
    """The primary context of a card, current in the thread that created this object."""

    def __init__(self, card: int = 0, *, library: str = DRIVER) -> None:
        self._driver = ctypes.CDLL(library)
        self._device, self._stream, self._kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(card))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuStreamCreate", ctypes.byref(self._stream), ctypes.c_uint(_NON_BLOCKING))
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(_IMAGE))
        self._call("cuModuleGetFunction", ctypes.byref(self._kernel), module, ctypes.c_char_p(_TIMED))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases the context and everything that it holds."""
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    def allocate(self, length: int) -> int:
        """Allocates bytes on the card and returns their address."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(length))
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: int, content: bytes) -> None:
        """Copies to the card synchronously."""
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), content, ctypes.c_size_t(len(content)))

    def read(self, address: int, length: int) -> bytes:
        content = ctypes.create_string_buffer(length)
        self._call("cuMemcpyDtoH_v2", content, ctypes.c_uint64(address), ctypes.c_size_t(length))
        return content.raw

    def room(self) -> Room:
        """Returns free and total memory."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return Room(free.value, total.value)

    def launch(self, *, duration_ns: int) -> None:
        """Launches a kernel of this duration without waiting for it."""
        duration = ctypes.c_uint64(duration_ns)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
        sizes = [ctypes.c_uint(size) for size in (1, 1, 1, 32, 1, 1, 0)]
        self._call("cuLaunchKernel", self._kernel, *sizes, self._stream, parameters, None)

    def synchronize(self) -> None:
        """Waits for all launched kernels."""
        self._call("cuStreamSynchronize", self._stream)

    def _call(self, name: str, *arguments: object) -> None:
        number: int = getattr(self._driver, name)(*arguments)
        if number:
            told = ctypes.c_char_p()
            self._driver.cuGetErrorName(number, ctypes.byref(told))
            raise CudaError(name, number, (told.value or b"unknown").decode())
