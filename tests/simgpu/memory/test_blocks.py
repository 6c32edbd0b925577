"""cuMemAlloc cuts small memory from 2 MiB blocks and gives large memory blocks of its own."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import BLOCK, INVALID_VALUE, Program, used

pytestmark = pytest.mark.slow


def test_holes_that_touch_are_one_and_filled_before_another_block_is_taken(node: SimulatedNode, one: Program) -> None:
    addresses = [one.ask("alloc(256 * KIB)") for _ in range(8)]
    full = used(node)
    for order in ((3, 4), (4, 3), (3, 5, 4)):
        for n in order:
            one.ask(f"free({addresses[n]})")
        assert one.ask(f"alloc({len(order)} * 256 * KIB)") == addresses[3]
        assert used(node) == full
        one.ask(f"free({addresses[3]})")
        assert [one.ask("alloc(256 * KIB)") for _ in order] == [addresses[n] for n in sorted(order)]


def test_holes_that_do_not_touch_do_not_add_up(node: SimulatedNode, one: Program) -> None:
    addresses = [one.ask("alloc(256 * KIB)") for _ in range(8)]
    full = used(node)
    one.ask(f"free({addresses[1]})")
    one.ask(f"free({addresses[5]})")
    one.ask("alloc(512 * KIB)")
    assert used(node) == full + BLOCK


def test_the_host_cannot_touch_memory_of_the_card(node: SimulatedNode) -> None:
    two = Program(node)
    two.ask("start()")
    address = two.ask("alloc(4096)")
    two.say(f"peek({address}, 1)")
    assert two.close() < 0


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
    assert used(node) == before - 3 * BLOCK  # the free synchronised, so the pool freed its chunk


def test_two_hundred_threads_allocate_and_free_as_one_would(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    assert one.ask("hammer(200)") == []
    one.ask('call("cuMemPoolTrimTo", pool_of(), 0)')
    assert used(node) == before


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
