"""Memory without addresses and addresses without memory, and mappings of one to the other."""

from __future__ import annotations

import pytest

from simgpu.memory.programs import INVALID_VALUE, NOT_SUPPORTED, Program

pytestmark = pytest.mark.slow


def test_two_addresses_of_the_same_memory_show_the_same(one: Program) -> None:
    one.ask("h = create(2 * MIB)")
    one.ask("a, b = opened(h, 2 * MIB), opened(h, 2 * MIB)")
    one.ask('write(a + MIB, "the same")')
    assert one.ask("text(b + MIB, 8)") == "the same"
    one.ask("unmap(a, 2 * MIB)")
    assert one.error("read(a, 1)") == INVALID_VALUE
    assert one.ask("text(b + MIB, 8)") == "the same"


def test_copies_run_across_mappings_that_touch(one: Program) -> None:
    one.ask("a = reserve(6 * MIB)")
    one.ask("[map_at(a + n * 2 * MIB, 2 * MIB, create(2 * MIB)) for n in range(3)] and None")
    one.ask("write(a + 2 * MIB - 3, 'across the border')")
    assert one.ask("text(a + 2 * MIB - 3, 17)") == "across the border"
    assert one.error("write(a + 6 * MIB - 3, 'beyond')") == INVALID_VALUE
    one.ask("unmap(a, 6 * MIB)")
    one.ask('call("cuMemAddressFree", a, 6 * MIB)')


def test_a_handle_tells_what_it_was_made_as(one: Program) -> None:
    one.ask("h = create(2 * MIB, shared=True)")
    one.ask("told_ = (ctypes.c_ubyte * 32)()")
    one.ask('call("cuMemGetAllocationPropertiesFromHandle", told_, h)')
    assert one.ask("bytes(told_) == properties(shared=True)") is True


def test_host_memory_and_other_handles_than_descriptors_are_not_supported(one: Program) -> None:
    assert one.error('told("cuMemCreate", 2 * MIB, words(1, 0, 2, 0, width=4) + bytes(16), 0)') == NOT_SUPPORTED
    assert one.error('told("cuMemCreate", 2 * MIB, words(1, 8, 1, 0, width=4) + bytes(16), 0)') == NOT_SUPPORTED
