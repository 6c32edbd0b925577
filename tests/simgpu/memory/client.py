"""Runs in a child process whose LD_LIBRARY_PATH has the simulated driver: answers lines of Python with lines of JSON.

Lines can use the calls below, each of which raises on an error of the driver. Nothing here depends on the simulation.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

cuda = ctypes.CDLL("libcuda.so.1")
KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
INT: Final = ctypes.c_int
WORD: Final = ctypes.c_uint64
FD: Final = 1
DEVICE: Final = 1
PINNED: Final = 1
MANAGED: Final = 2
NOWHERE: Final = 0
HOST: Final = 2
DOMAIN: Final = 6
READWRITE: Final = 3


class Said(Exception):
    """The driver returned an error."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the driver answered {number}")
        self.number = number


def call(name: str, *arguments: object) -> None:
    """Call any function: integers are passed as 64 bits, bytes unchanged, other types as by ctypes."""
    if number := getattr(cuda, name)(*plain(arguments)):
        raise Said(number)


def plain(arguments: Sequence[object]) -> list[object]:
    return [WORD(one) if isinstance(one, int) else one for one in arguments]


def refused(name: str, *arguments: object) -> None:
    """A call that the driver must refuse."""
    if not getattr(cuda, name)(*plain(arguments)):
        raise Said(0)


def written(name: str, *arguments: object) -> tuple[int, int]:
    """A function's result code, and the value that it writes to its first argument, which is 77 before."""
    value = WORD(77)
    return getattr(cuda, name)(ctypes.byref(value), *plain(arguments)), value.value


def told(name: str, *arguments: object, kind: Any = WORD) -> Any:
    """The value that a function writes to its first argument."""
    value = kind()
    call(name, ctypes.byref(value), *arguments)
    return value.value


def words(*values: int, width: int = 8) -> bytes:
    return b"".join(value.to_bytes(width, "little") for value in values)


# ---- contexts and streams


def start(device: int = 0) -> None:
    """Compute on a device in this thread."""
    call("cuInit", 0)
    call("cuCtxSetCurrent", told("cuDevicePrimaryCtxRetain", device))


def reset(device: int = 0) -> None:
    call("cuDevicePrimaryCtxReset_v2", device)


def stream(flags: int = 1) -> int:
    """A stream; by default one that does not wait for the legacy stream."""
    return int(told("cuStreamCreate", flags))


def synchronize(one: int = 0) -> None:
    call("cuStreamSynchronize", one)


def kernel(name: str) -> int:
    """A function by its name, which encodes its duration."""
    return int(told("cuModuleGetFunction", told("cuModuleLoadData", b"anything"), name.encode()))


def launch(name: str, one: int = 0, suffix: str = "") -> None:
    """Launch a kernel of this name in a stream."""
    run(kernel(name), one, suffix)


def run(function: int, one: int = 0, suffix: str = "") -> None:
    call(f"cuLaunchKernel{suffix}", function, 1, 1, 1, 1, 1, 1, 0, one, None, None)


def repeated(function: int, count: int, one: int) -> int:
    """An executable graph with this many launches of it."""

    def body() -> None:
        for _ in range(count):
            run(function, one)

    return captured(one, body)[0]


def captured(one: int, body: Callable[[], object]) -> tuple[int, object]:
    """An executable graph of what `body` does in a stream, and the result of `body`."""
    call("cuStreamBeginCapture_v2", one, 0)
    answer = body()
    graph = WORD()
    call("cuStreamEndCapture", one, ctypes.byref(graph))
    executable = told("cuGraphInstantiateWithFlags", graph.value, 0)
    call("cuGraphDestroy", graph.value)
    return executable, answer


# ---- memory


def alloc(size: int) -> int:
    return int(told("cuMemAlloc_v2", size))


def free(address: int) -> None:
    call("cuMemFree_v2", address)


def alloc_async(size: int, one: int = 0) -> int:
    return int(told("cuMemAllocAsync", size, one))


def free_async(address: int, one: int = 0) -> None:
    call("cuMemFreeAsync", address, one)


def managed(size: int) -> int:
    return int(told("cuMemAllocManaged", size, 1))


def pitched(width: int, height: int) -> tuple[int, int]:
    """The address and the pitch of rows."""
    address, pitch = WORD(), WORD()
    call("cuMemAllocPitch_v2", ctypes.byref(address), ctypes.byref(pitch), width, height, 4)
    return address.value, pitch.value


def info() -> tuple[int, int]:
    """Free and total bytes of the card."""
    unused, total = WORD(), WORD()
    call("cuMemGetInfo_v2", ctypes.byref(unused), ctypes.byref(total))
    return unused.value, total.value


def span(address: int) -> tuple[int, int]:
    """Start and size of the allocation that contains an address."""
    start_, size = WORD(), WORD()
    call("cuMemGetAddressRange_v2", ctypes.byref(start_), ctypes.byref(size), address)
    return start_.value, size.value


def attribute(address: int, which: int, kind: Any = WORD) -> Any:
    value = kind()
    call("cuPointerGetAttribute", ctypes.byref(value), which, address)
    return value.value


def write(address: int, data: bytes | str) -> None:
    data = data.encode() if isinstance(data, str) else data
    call("cuMemcpyHtoD_v2", address, data, len(data))


def read(address: int, size: int) -> list[int]:
    data = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", data, address, size)
    return list(data.raw)


def same(address: int, data: bytes) -> bool:
    """Whether memory contains these bytes."""
    found = ctypes.create_string_buffer(len(data))
    call("cuMemcpyDtoH_v2", found, address, len(data))
    return found.raw == data


def text(address: int, size: int) -> str:
    """The bytes in memory, as text."""
    return bytes(read(address, size)).decode("latin-1")


# ---- pools


def location(device: int = 0, where: int = DEVICE) -> bytes:
    return words(where, device, width=4)


def make_pool(*, shared: bool = False, most: int = 0, device: int = 0, where: int = DEVICE, kind: int = PINNED) -> int:
    like = words(kind, FD if shared else 0, width=4) + location(device, where) + words(0, most) + bytes(56)
    return int(told("cuMemPoolCreate", like))


def pool_of(device: int = 0) -> int:
    return int(told("cuDeviceGetDefaultMemPool", device))


def pool_at(where: int, kind: int, device: int = 0) -> int:
    """The current pool of a location and a kind of memory."""
    return int(told("cuMemGetMemPool", location(device, where), kind))


def pool_get(pool: int, which: int) -> int:
    value = WORD()
    call("cuMemPoolGetAttribute", pool, which, ctypes.byref(value))
    return value.value


def pool_set(pool: int, which: int, value: int) -> None:
    call("cuMemPoolSetAttribute", pool, which, ctypes.byref(WORD(value)))


def alloc_from(pool: int, size: int, one: int = 0) -> int:
    return int(told("cuMemAllocFromPoolAsync", size, pool, one))


def graph_memory(which: int, device: int = 0) -> int:
    value = WORD()
    call("cuDeviceGetGraphMemAttribute", device, which, ctypes.byref(value))
    return value.value


# ---- virtual memory


def properties(*, shared: bool = False, device: int = 0, where: int = DEVICE) -> bytes:
    return words(PINNED, FD if shared else 0, width=4) + location(device, where) + bytes(16)


def create(size: int, *, shared: bool = False, device: int = 0, where: int = DEVICE) -> int:
    return int(told("cuMemCreate", size, properties(shared=shared, device=device, where=where), 0))


def reserve(size: int, alignment: int = 0) -> int:
    return int(told("cuMemAddressReserve", size, alignment, 0, 0))


def map_at(address: int, size: int, handle: int) -> None:
    call("cuMemMap", address, size, 0, handle, 0)
    call("cuMemSetAccess", address, size, location() + words(READWRITE, width=4), 1)


def unmap(address: int, size: int) -> None:
    call("cuMemUnmap", address, size)


def release(handle: int) -> None:
    call("cuMemRelease", handle)


def opened(handle: int, size: int) -> int:
    """A new address that maps a handle's memory."""
    address = reserve(size)
    map_at(address, size, handle)
    return address


# ---- sharing


def state_of(pid: int) -> int:
    """A process's state in the driver's checkpoint."""
    state = INT(-1)
    call("cuCheckpointProcessGetState", pid, ctypes.byref(state))
    return state.value


def ipc_handle(address: int) -> str:
    handle = (ctypes.c_ubyte * 64)()
    call("cuIpcGetMemHandle", handle, address)
    return bytes(handle).hex()


class Handle(ctypes.Structure):
    """A struct, since it is passed by value."""

    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


def ipc_open(handle: str, flags: int = 1) -> int:
    return int(told("cuIpcOpenMemHandle_v2", Handle.from_buffer_copy(bytes.fromhex(handle)), INT(flags)))


def ipc_close(address: int) -> None:
    call("cuIpcCloseMemHandle", address)


def export_memory(handle: int) -> int:
    return int(told("cuMemExportToShareableHandle", handle, FD, 0, kind=INT))


def import_memory(descriptor: int) -> int:
    return int(told("cuMemImportFromShareableHandle", descriptor, FD))


def export_pool(pool: int) -> int:
    return int(told("cuMemPoolExportToShareableHandle", pool, FD, 0, kind=INT))


def import_pool(descriptor: int) -> int:
    return int(told("cuMemPoolImportFromShareableHandle", descriptor, FD, 0))


def export_pointer(address: int) -> str:
    data = (ctypes.c_ubyte * 64)()
    call("cuMemPoolExportPointer", data, address)
    return bytes(data).hex()


def import_pointer(pool: int, data: str) -> int:
    return int(told("cuMemPoolImportPointer", pool, bytes.fromhex(data)))


# ---- arrays


def array(*sides: int, kind: int = 1, channels: int = 1, flags: int = 0) -> int:
    like = words(*sides, *[0] * (3 - len(sides))) + words(kind, channels, flags, 0, width=4)
    return int(told("cuArray3DCreate_v2", like))


def mipmaps(width: int, height: int, levels: int) -> int:
    return int(told("cuMipmappedArrayCreate", words(width, height, 0) + words(1, 1, 0, 0, width=4), levels))


# ---- host memory


def host(size: int) -> int:
    return int(told("cuMemHostAlloc", size, 0))


def peek(address: int, size: int) -> str:
    """The bytes that the program itself reads at an address."""
    return ctypes.string_at(address, size).decode("latin-1")


def poke(address: int, data: str) -> None:
    ctypes.memmove(address, data.encode("latin-1"), len(data))


# ---- many at once


def several(calls: Sequence[Callable[[], object]]) -> list[object]:
    return [one() for one in calls]


def _work(context: int, number: int, failed: list[str]) -> None:
    try:
        call("cuCtxSetCurrent", context)
        for turn in range(20):
            mine = [
                (alloc if (turn + n) % 2 else alloc_async)(2 + 7919 * (number + turn + n) % 300_000) for n in range(3)
            ]
            for n, address in enumerate(mine):
                write(address, bytes([number % 256, n]))
            failed += [
                f"{number} found others' data" for n, one in enumerate(mine) if read(one, 2) != [number % 256, n]
            ]
            for address in mine:
                free(address)
    except Exception as error:  # noqa: BLE001 (the test must see it, whatever it is)
        failed.append(repr(error))


def hammer(count: int) -> list[str]:
    """Threads that allocate, write, read and free; returns their failures."""
    context, failed = told("cuCtxGetCurrent"), list[str]()
    threads = [threading.Thread(target=_work, args=(context, number, failed)) for number in range(count)]
    several([thread.start for thread in threads])
    several([thread.join for thread in threads])
    return failed


def race(count: int, turns: int, size: int = 2 * MIB, *, keeps: bool = False) -> list[int]:
    """Threads that allocate memory of two kinds, and free it unless they keep it; returns their errors."""
    context, wrong = told("cuCtxGetCurrent"), list[int]()

    def work(number: int) -> None:
        call("cuCtxSetCurrent", context)
        for turn in range(turns):
            take, give = (alloc, free) if (turn + number) % 3 else (create, release)
            try:
                held = take(size)
            except Said as said:
                wrong.append(said.number)
                continue
            if not keeps:
                give(held)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    several([thread.start for thread in threads])
    several([thread.join for thread in threads])
    return wrong


def forked() -> int:
    """The driver's result in a child of this process."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        alloc(64)
    except Said as said:
        os._exit(said.number)
    os._exit(99)


def answered(line: str, names: dict[str, Any]) -> tuple[str, object]:
    """("ok", value), ("cuda", the error), or ("error", the exception). A line is an expression or a statement."""
    try:
        try:
            value = eval(line, names)  # noqa: S307 (the test's own)
            return "ok", None if isinstance(value, threading.Thread) else value
        except SyntaxError:
            exec(line, names)  # noqa: S102
            return "ok", None
    except Said as said:
        return "cuda", said.number
    except Exception as error:  # noqa: BLE001 (the test must see it, whatever it is)
        return "error", f"{type(error).__name__}: {error}"


def main(names: dict[str, Any]) -> None:
    """Answer until there are no more lines, which can use these names."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answered(line.strip(), names)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(dict(globals()))  # names bound by lines do not shadow the calls above
