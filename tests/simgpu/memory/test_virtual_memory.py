"""Memory without addresses and addresses without memory, and mappings of one to the other."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import BLOCK, INVALID_VALUE, MIB, NOT_SUPPORTED, OUT_OF_MEMORY, Program, used

pytestmark = pytest.mark.slow


def test_memory_costs_when_it_is_made_and_addresses_cost_nothing(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("reserve(1 << 38)")
    assert used(node) == before
    one.ask("h = create(6 * MIB)")
    assert used(node) - before == 6 * MIB
    one.ask("release(h)")
    assert used(node) == before


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


def test_nothing_is_accessible_before_it_is_granted(one: Program) -> None:
    one.ask("h, a = create(2 * MIB), reserve(2 * MIB)")
    one.ask('call("cuMemMap", a, 2 * MIB, 0, h, 0)')
    assert one.error("write(a, 'x')") == INVALID_VALUE
    assert one.ask('told("cuMemGetAccess", location(), a)') == 0
    one.ask('call("cuMemSetAccess", a, 2 * MIB, location() + words(READWRITE, width=4), 1)')
    assert one.ask('told("cuMemGetAccess", location(), a)') == 3
    one.ask("write(a, 'x')")


def test_granularity_is_two_mib_and_sizes_are_multiples_of_it(one: Program) -> None:
    assert one.ask('told("cuMemGetAllocationGranularity", properties(), 0)') == BLOCK
    assert one.ask('told("cuMemGetAllocationGranularity", properties(), 1)') == BLOCK
    assert one.error("create(MIB)") == INVALID_VALUE
    assert one.error("reserve(4095)") == INVALID_VALUE
    assert one.error("reserve((1 << 64) - 4096)") == OUT_OF_MEMORY


def test_a_handle_tells_what_it_was_made_as(one: Program) -> None:
    one.ask("h = create(2 * MIB, shared=True)")
    one.ask("told_ = (ctypes.c_ubyte * 32)()")
    one.ask('call("cuMemGetAllocationPropertiesFromHandle", told_, h)')
    assert one.ask("bytes(told_) == properties(shared=True)") is True


def test_reservations_are_aligned_as_asked(one: Program) -> None:
    for alignment in (1 << 21, 1 << 25, 1 << 30):
        assert one.ask(f"reserve(2 * MIB, {alignment})") % alignment == 0
    assert one.error("reserve(2 * MIB, 3 * MIB)") == INVALID_VALUE


@pytest.mark.parametrize(
    "wrong",
    [
        "map_at(a, 2 * MIB, h)",  # mapped already
        "map_at(a + 2 * MIB, 4 * MIB, h)",  # more than the memory has
        "map_at(a + 4 * MIB, 2 * MIB, h)",  # beyond the reservation
        "map_at(a + 2 * MIB, 2 * MIB, 4711)",
        "unmap(a, MIB)",
        "unmap(a, 4 * MIB)",
        'call("cuMemAddressFree", a, 4 * MIB)',  # still mapped
        'call("cuMemAddressFree", a, 2 * MIB)',
        'call("cuMemSetAccess", a, 4 * MIB, location() + words(READWRITE, width=4), 1)',
        "free(a)",
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(node: SimulatedNode, one: Program, wrong: str) -> None:
    one.ask("h, a = create(2 * MIB), reserve(4 * MIB)")
    one.ask("map_at(a, 2 * MIB, h)")
    before = used(node)
    assert one.error(wrong) == INVALID_VALUE
    one.ask("write(a, 'x')")
    assert used(node) == before


def test_host_memory_and_other_handles_than_descriptors_are_not_supported(one: Program) -> None:
    assert one.error('told("cuMemCreate", 2 * MIB, words(1, 0, 2, 0, width=4) + bytes(16), 0)') == NOT_SUPPORTED
    assert one.error('told("cuMemCreate", 2 * MIB, words(1, 8, 1, 0, width=4) + bytes(16), 0)') == NOT_SUPPORTED


def test_memory_is_made_on_the_device_that_it_names(node: SimulatedNode, one: Program) -> None:
    before = used(node, 0)
    one.ask("create(64 * MIB, device=1)")
    assert used(node, 0) == before
    assert used(node, 1) == 64 * MIB
