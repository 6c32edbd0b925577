"""The part of the driver API that the questions need, by ctypes.

card = Card()                                   # the primary context of the first card
address = card.allocate(1 << 20)
card.launch(card.function("sim_arg"), ctypes.c_uint64(1_000_000))
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

LIBRARY = "libcuda.so.1"
MIB = 1 << 20
OUT_OF_MEMORY = 2
NOT_SUPPORTED = 801
Pointer = ctypes.c_uint64
Handle = ctypes.c_void_p

SPIN = """
.visible .entry sim_arg(.param .u64 nanoseconds)
{
    .reg .pred %more;
    .reg .u64 %span, %begin, %now;
    ld.param.u64 %span, [nanoseconds];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %more, %now, %span;
    @%more bra again;
    ret;
}
"""
"""Spins for as many nanoseconds as its parameter says, by the card's own clock; a simulated card goes by the name."""

SWEEP = """
.visible .entry sweep(.param .u64 from, .param .u64 words, .param .u64 out)
{
    .reg .pred %more;
    .reg .u32 %thread, %block, %threads, %blocks;
    .reg .u64 %base, %end, %out, %i, %step, %at, %v, %sum;
    ld.param.u64 %base, [from];
    ld.param.u64 %end, [words];
    ld.param.u64 %out, [out];
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %blocks, %nctaid.x;
    mad.lo.u32 %thread, %block, %threads, %thread;
    cvt.u64.u32 %i, %thread;
    mul.wide.u32 %step, %threads, %blocks;
    mov.u64 %sum, 0;
    setp.lt.u64 %more, %i, %end;
    @!%more bra end;
again:
    shl.b64 %at, %i, 3;
    add.u64 %at, %at, %base;
    ld.global.u64 %v, [%at];
    add.u64 %sum, %sum, %v;
    add.u64 %i, %i, %step;
    setp.lt.u64 %more, %i, %end;
    @%more bra again;
    setp.eq.u64 %more, %sum, 1;
    @%more st.global.u64 [%out], %sum;
end:
    ret;
}
"""
"""Reads this many words of 8 bytes, in all threads concurrently."""

HEAD = ".version 6.3\n.target sm_75\n.address_size 64\n"


def with_locals(count: int) -> str:
    """A kernel `locals` with this many bytes of local memory per thread, which no compiler can remove."""
    return f"""
.visible .entry locals(.param .u64 out, .param .u32 index)
{{
    .local .align 16 .b8 buffer[{count}];
    .reg .pred %p;
    .reg .u32 %i, %j, %v;
    .reg .u64 %base, %at, %off, %out;
    ld.param.u64 %out, [out];
    ld.param.u32 %i, [index];
    mov.u64 %base, buffer;
    mov.u32 %j, 0;
fill:
    cvt.u64.u32 %off, %j;
    add.u64 %at, %base, %off;
    add.u32 %v, %j, %i;
    st.local.u32 [%at], %v;
    add.u32 %j, %j, 128;
    setp.lt.u32 %p, %j, {count};
    @%p bra fill;
    and.b32 %i, %i, {count - 4};
    cvt.u64.u32 %off, %i;
    add.u64 %at, %base, %off;
    ld.local.u32 %v, [%at];
    st.global.u32 [%out], %v;
    ret;
}}
"""


def with_globals(count: int) -> str:
    """A kernel `touch`, and a variable of this many bytes that is loaded with it."""
    return f"""
.visible .global .align 16 .b8 large[{count}];
.visible .entry touch(.param .u32 value)
{{
    .reg .u32 %v;
    .reg .u64 %at;
    ld.param.u32 %v, [value];
    mov.u64 %at, large;
    st.global.u32 [%at], %v;
    ret;
}}
"""


class DriverError(Exception):
    def __init__(self, call: str, number: int) -> None:
        super().__init__(f"{call} answered {number}")
        self.call, self.number = call, number


class Driver:
    def __init__(self, path: str = LIBRARY) -> None:
        self.library = ctypes.CDLL(path)

    def ask(self, name: str, *arguments: object) -> int:
        """The driver's result code, also an error."""
        number: int = getattr(self.library, name)(*arguments)
        return number

    def call(self, name: str, *arguments: object) -> None:
        number = self.ask(name, *arguments)
        if number:
            raise DriverError(name, number)

    def has(self, name: str) -> bool:
        return hasattr(self.library, name)

    def start(self) -> None:
        self.call("cuInit", ctypes.c_uint(0))

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(number), ctypes.c_int(0))
        return value.value


class Card(Driver):
    """The primary context of the first card, current in this thread."""

    def __init__(self, path: str = LIBRARY) -> None:
        super().__init__(path)
        self.start()
        self.context = Handle()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ctypes.c_int(0))
        self.call("cuCtxSetCurrent", self.context)

    def stream(self, flags: int = 1) -> Handle:
        made = Handle()
        self.call("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(flags))
        return made

    def module(self, text: str) -> Handle:
        made = Handle()
        self.call("cuModuleLoadData", ctypes.byref(made), ctypes.c_char_p((HEAD + text).encode()))
        return made

    def function(self, name: str = "sim_arg", text: str = SPIN) -> Handle:
        found = Handle()
        self.call("cuModuleGetFunction", ctypes.byref(found), self.module(text), ctypes.c_char_p(name.encode()))
        return found

    def launch(
        self,
        function: Handle,
        *values: ctypes.c_uint64 | ctypes.c_uint32,
        stream: Handle | None = None,
        blocks: int = 1,
        threads: int = 32,
    ) -> None:
        shape = [ctypes.c_uint(each) for each in (blocks, 1, 1, threads, 1, 1, 0)]
        self.call("cuLaunchKernel", function, *shape, stream, parameters(values), None)

    def spin(self, ms: float, stream: Handle | None = None) -> None:
        self.launch(self.function(), ctypes.c_uint64(int(ms * 1e6)), stream=stream)

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")

    def allocate(self, length: int) -> Pointer:
        address = Pointer()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(length))
        return address

    def room(self) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def graph(self, function: Handle, kernels: int) -> Handle:
        """A graph of that kernel repeated, ready to be launched."""
        stream, graph, executable = self.stream(), Handle(), Handle()
        self.call("cuStreamBeginCapture_v2", stream, ctypes.c_int(1))
        for _ in range(kernels):
            self.launch(function, ctypes.c_uint64(1000), stream=stream)
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        self.call("cuGraphDestroy", graph)
        self.call("cuStreamDestroy_v2", stream)
        return executable


def parameters(values: Sequence[ctypes.c_uint64 | ctypes.c_uint32]) -> ctypes.Array[ctypes.c_void_p]:
    """Parameters in the form of a launch; the values must live until the call."""
    return (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
