"""Memory without addresses and addresses without memory, and mappings of one to the other."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import INVALID_VALUE, MIB, NOT_SUPPORTED, Program, used

pytestmark = pytest.mark.slow


def test_memory_lives_while_a_handle_or_a_mapping_does(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("h = create(4 * MIB)")
    one.ask("a = opened(h, 4 * MIB)")
    one.ask("b = opened(h, 4 * MIB)")
    one.ask("release(h)")
    one.ask("unmap(a, 4 * MIB)")
    assert used(node) - before == 4 * MIB
    one.ask('h = told("cuMemRetainAllocationHandle", b + 100)')
    one.ask("unmap(b, 4 * MIB)")
    assert used(node) - before == 4 * MIB
    one.ask("release(h)")
    assert used(node) == before
    assert one.error("release(h)") == INVALID_VALUE


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


def test_what_is_unmapped_may_be_unmapped_again_and_a_part_of_a_mapping_may_not(
    node: SimulatedNode, one: Program
) -> None:
    before = used(node)
    one.ask("a = reserve(8 * MIB)")
    one.ask("map_at(a + 2 * MIB, 4 * MIB, create(4 * MIB))")
    for start, size in ((0, 4), (4, 4), (4, 2)):
        assert one.error(f"unmap(a + {start} * MIB, {size} * MIB)") == INVALID_VALUE
    one.ask("h = told('cuMemRetainAllocationHandle', a + 2 * MIB)")
    one.ask("unmap(a, 8 * MIB)")
    one.ask("unmap(a, 8 * MIB)")
    assert one.error("unmap(a, 10 * MIB)") == INVALID_VALUE
    one.ask("[release(h) for _ in range(2)] and None")
    assert used(node) == before


def test_no_less_than_a_block_of_addresses_is_reserved_and_no_more_mapped_than_there_is(one: Program) -> None:
    assert [one.error(f"reserve({size})") for size in (4096, "MIB", "3 * MIB")] == [INVALID_VALUE] * 3
    one.ask("a = reserve(4 * MIB)")
    assert one.error("map_at(a, 4 * MIB, create(2 * MIB))") == NOT_SUPPORTED


def test_a_handle_tells_what_it_was_made_as(one: Program) -> None:
    one.ask("h = create(2 * MIB, shared=True)")
    one.ask("told_ = (ctypes.c_ubyte * 32)()")
    one.ask('call("cuMemGetAllocationPropertiesFromHandle", told_, h)')
    assert one.ask("bytes(told_) == properties(shared=True)") is True


def test_host_memory_and_other_handles_than_descriptors_are_not_supported(one: Program) -> None:
    assert one.error('told("cuMemCreate", 2 * MIB, words(1, 0, 2, 0, width=4) + bytes(16), 0)') == NOT_SUPPORTED
    assert one.error('told("cuMemCreate", 2 * MIB, words(1, 8, 1, 0, width=4) + bytes(16), 0)') == NOT_SUPPORTED


def test_memory_is_made_on_the_device_that_it_names(node: SimulatedNode, one: Program) -> None:
    before = used(node, 0)
    one.ask("create(64 * MIB, device=1)")
    assert used(node, 0) == before
    assert used(node, 1) == 64 * MIB
