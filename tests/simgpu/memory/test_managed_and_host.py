"""Memory that the program sees, too: managed, pinned and registered."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import BLOCK, INVALID_VALUE, Program, used

pytestmark = pytest.mark.slow

ALREADY_REGISTERED, NOT_REGISTERED = 712, 713
READ_MOSTLY, PREFERRED, ACCESSED_BY, PREFETCHED = 1, 2, 3, 4
CPU = -1


def test_managed_memory_is_the_same_for_program_and_card(one: Program) -> None:
    one.ask("m, a = managed(40 * MIB), alloc(64)")
    one.ask("poke(m + 30 * MIB, 'by the program')")
    one.ask('call("cuMemcpyDtoD_v2", a, m + 30 * MIB, 14)')
    assert one.ask("text(a, 14)") == "by the program"
    one.ask('call("cuMemsetD8_v2", m + 30 * MIB, 0x2e, 3)')
    assert one.ask("peek(m + 30 * MIB, 14)") == "...the program"


def test_managed_memory_is_charged_in_full(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("m = managed(3 * MIB)")
    assert used(node) - before == 2 * BLOCK
    one.ask("free(m)")
    assert used(node) == before
    assert one.error("free(m)") == INVALID_VALUE
    assert one.error('told("cuMemAllocManaged", 64, 7)') == INVALID_VALUE


def test_new_managed_memory_is_zero_although_its_address_was_used(one: Program) -> None:
    one.ask("m = managed(64)")
    one.ask("poke(m, 'secret')")
    one.ask("free(m)")
    assert one.ask("managed(64)") == one.ask("m")
    assert one.ask("peek(m, 6)") == "\0" * 6


def test_the_host_cannot_touch_managed_memory_that_was_freed(node: SimulatedNode) -> None:
    two = Program(node)
    two.ask("start()")
    two.ask("m = managed(64)")
    two.ask("poke(m, 'alive')")
    two.ask("free(m)")
    two.say("peek(m, 1)")
    assert two.close() < 0


def test_pinned_memory_takes_nothing_of_the_card(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("h = host(10 * MIB)")
    one.ask("poke(h + 9 * MIB, 'pinned')")
    assert used(node) == before
    assert one.ask('told("cuMemHostGetDevicePointer_v2", ctypes.c_void_p(h + 5), 0)') == one.ask("h + 5")
    one.ask('other = told("cuMemAllocHost_v2", 64)')
    for address in ("h", "other"):
        one.ask(f'call("cuMemFreeHost", ctypes.c_void_p({address}))')
        assert one.error(f'call("cuMemFreeHost", ctypes.c_void_p({address}))') == INVALID_VALUE
    assert one.error("free(host(64))") == INVALID_VALUE


def test_flags_of_pinned_memory_are_remembered(one: Program) -> None:
    one.ask('h = told("cuMemHostAlloc", 64, 5)')
    assert one.ask('told("cuMemHostGetFlags", ctypes.c_void_p(h), kind=ctypes.c_uint)') == 5 | 2
    assert one.error('told("cuMemHostAlloc", 64, 8)') == INVALID_VALUE


def test_memory_is_registered_once(one: Program) -> None:
    one.ask("plain = ctypes.create_string_buffer(8192)")
    one.ask("where = ctypes.c_void_p(ctypes.addressof(plain))")
    one.ask('call("cuMemHostRegister_v2", where, 8192, 0)')
    assert one.error('call("cuMemHostRegister_v2", where, 10, 0)') == ALREADY_REGISTERED
    inside = "ctypes.c_void_p(where.value + 4096)"
    assert one.error(f'call("cuMemHostUnregister", {inside})') == INVALID_VALUE
    one.ask('call("cuMemHostUnregister", where)')
    assert one.error('call("cuMemHostUnregister", where)') == NOT_REGISTERED
