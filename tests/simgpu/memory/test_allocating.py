"""cuMemAlloc cuts small memory from 2 MiB blocks and gives large memory blocks of its own."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import BLOCK, INVALID_CONTEXT, INVALID_VALUE, MIB, NOT_FOUND, Program, program, used

pytestmark = pytest.mark.slow


def test_the_first_byte_takes_a_block_and_the_next_ones_take_nothing(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    first = one.ask("alloc(1)")
    assert used(node) - before == BLOCK
    others = [one.ask("alloc(100 * KIB)") for _ in range(20)]
    assert used(node) - before == BLOCK
    assert len({first, *others}) == 21
    assert all(address % 512 == 0 for address in [first, *others])


def test_a_block_goes_back_with_its_last_byte(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    addresses = [one.ask("alloc(512 * KIB)") for _ in range(9)]
    assert used(node) - before == 3 * BLOCK
    for address in addresses[:4]:
        one.ask(f"free({address})")
    assert used(node) - before == 2 * BLOCK
    for address in addresses[4:]:
        one.ask(f"free({address})")
    assert used(node) == before


@pytest.mark.parametrize("size", [MIB + 1, BLOCK, BLOCK + 1, 100 * MIB])
def test_large_memory_has_whole_blocks_of_its_own(node: SimulatedNode, one: Program, size: int) -> None:
    before = used(node)
    address = one.ask(f"alloc({size})")
    assert used(node) - before == -(-size // BLOCK) * BLOCK
    one.ask("alloc(1)")
    assert used(node) - before == -(-size // BLOCK) * BLOCK + BLOCK
    one.ask(f"free({address})")
    assert used(node) - before == BLOCK


@pytest.mark.parametrize("order", [(3, 4), (4, 3), (3, 5, 4)])
def test_holes_that_touch_are_one_and_filled_before_another_block_is_taken(
    node: SimulatedNode, one: Program, order: tuple[int, ...]
) -> None:
    addresses = [one.ask("alloc(256 * KIB)") for _ in range(8)]
    full = used(node)
    for n in order:
        one.ask(f"free({addresses[n]})")
    assert one.ask(f"alloc({len(order)} * 256 * KIB)") == addresses[3]
    assert used(node) == full


def test_holes_that_do_not_touch_do_not_add_up(node: SimulatedNode, one: Program) -> None:
    addresses = [one.ask("alloc(256 * KIB)") for _ in range(8)]
    full = used(node)
    one.ask(f"free({addresses[1]})")
    one.ask(f"free({addresses[5]})")
    one.ask("alloc(512 * KIB)")
    assert used(node) == full + BLOCK


def test_pitched_memory_has_rows_that_begin_at_multiples_of_512(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    address, pitch = one.ask("pitched(1000, 4096)")
    assert pitch == 1024
    assert address % 512 == 0
    assert used(node) - before == 4096 * 1024
    assert one.ask(f"span({address})") == [address, 4096 * 1024]


def test_addresses_belong_to_what_was_asked_for_and_not_to_its_block(one: Program) -> None:
    address = one.ask("alloc(1000)")
    assert one.ask(f"span({address + 999})") == [address, 1000]
    assert one.error(f"span({address + 1000})") == NOT_FOUND


def test_free_and_total_are_what_simgpud_says(node: SimulatedNode, one: Program) -> None:
    one.ask("alloc(64 * MIB)")
    unused, total = one.ask("info()")
    assert total == node.status()[0].total_bytes
    assert total - unused == used(node)
    assert one.error('call("cuMemGetInfo_v2", None, None)') == 0


@pytest.mark.parametrize(
    "wrong",
    [
        "free(4096)",
        "free(a + 256)",
        'call("cuMemAlloc_v2", None, 64)',
        "alloc(0)",
        "write(a + 900, bytes(200))",
        "free_async(4096)",
    ],
)
def test_wrong_pointers_and_sizes_are_refused_and_change_nothing(node: SimulatedNode, one: Program, wrong: str) -> None:
    one.ask("a = alloc(1000)")
    before = used(node)
    assert one.error(wrong) == INVALID_VALUE
    assert used(node) == before


def test_memory_is_freed_once(one: Program) -> None:
    one.ask("a = alloc(1000)")
    one.ask("free(a)")
    assert one.error("free(a)") == INVALID_VALUE
    assert one.error("free(0)") == 0


def test_without_a_context_there_is_no_memory(node: SimulatedNode) -> None:
    with program(node, device=None) as two:
        two.ask('call("cuInit", 0)')
        assert two.error("alloc(1)") == INVALID_CONTEXT


def test_the_host_cannot_touch_memory_of_the_card(node: SimulatedNode) -> None:
    two = Program(node)
    two.ask("start()")
    address = two.ask("alloc(4096)")
    two.say(f"peek({address}, 1)")
    assert two.close() < 0


def test_all_of_a_context_goes_when_it_is_destroyed(node: SimulatedNode, one: Program) -> None:
    everything = "[alloc(1), alloc(3 * MIB), managed(MIB), array(100, 100), alloc_async(MIB), create(BLOCK), host(64)]"
    before = used(node)
    one.ask("BLOCK = 2 * MIB")
    one.ask(everything)
    assert used(node) > before
    one.ask("reset()")
    assert used(node) == before
    one.ask(everything)


def test_a_context_takes_only_its_own_memory_with_it(node: SimulatedNode, one: Program) -> None:
    one.ask("a = alloc(5 * MIB)")
    before = used(node)
    one.ask('other = told("cuCtxCreate_v2", 0, 0)')
    one.ask("b = alloc(KIB)")
    one.ask("p = alloc_async(KIB)")
    one.ask('call("cuCtxDestroy_v2", other)')
    assert one.error("free(b)") == INVALID_VALUE
    one.ask("free_async(p)")
    one.ask("free(a)")
    assert used(node) == before - 3 * BLOCK  # the free synchronised, so the pool gave its chunk back


def test_two_hundred_threads_allocate_and_free_as_one_would(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    assert one.ask("hammer(200)") == []
    one.ask('call("cuMemPoolTrimTo", pool_of(), 0)')
    assert used(node) == before
