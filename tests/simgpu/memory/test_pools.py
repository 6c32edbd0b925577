"""Pools keep freed memory, reuse it in stream order, and free it when they must."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import (
    CHUNK,
    INVALID_VALUE,
    MIB,
    OUT_OF_MEMORY,
    RESERVED,
    THRESHOLD,
    Program,
    used,
)

pytestmark = pytest.mark.slow


def test_other_streams_have_memory_again_once_the_work_before_its_free_is_done(one: Program) -> None:
    one.ask("one, two = stream(), stream()")
    one.ask("keep = alloc_async(MIB, one)")
    one.ask("a = alloc_async(20 * MIB, one)")
    one.ask('launch("sim_20ms", one)')
    one.ask("free_async(a, one)")
    one.ask("synchronize(one)")
    assert one.ask("alloc_async(20 * MIB, two)") == one.ask("a")


def test_memory_that_is_freed_piece_by_piece_becomes_whole_again(node: SimulatedNode, one: Program) -> None:
    one.ask("one = stream()")
    one.ask("pieces = [alloc_async(8 * MIB, one) for _ in range(4)]")
    one.ask('launch("sim_forever", one)')
    full = used(node)
    one.ask("[free_async(pieces[n], one) for n in (2, 0, 3, 1)] and None")
    assert one.ask("alloc_async(32 * MIB, one)") == one.ask("pieces[0]")
    assert used(node) == full


def test_what_streams_still_wait_to_free_is_not_trimmed(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("one = stream()")
    one.ask("a = alloc_async(MIB, one)")
    one.ask('launch("sim_100ms", one)')
    one.ask("free_async(a, one)")
    one.ask('call("cuMemPoolTrimTo", pool_of(), 0)')
    assert used(node) - before >= CHUNK
    one.ask("synchronize(one)")
    one.ask('call("cuMemPoolTrimTo", pool_of(), 0)')
    assert used(node) - before < CHUNK


def test_a_full_card_makes_pools_give_back_what_they_keep(node: SimulatedNode, one: Program) -> None:
    one.ask("pool = pool_of()")
    one.ask(f"pool_set(pool, {THRESHOLD}, 1 << 40)")
    one.ask("a = alloc_async(500 * MIB)")
    one.ask("free_async(a)")
    one.ask("synchronize()")
    assert used(node) > 500 * MIB
    one.ask("alloc(700 * MIB)")
    assert one.ask(f"pool_get(pool, {RESERVED})") == 0
    assert one.error("alloc_async(500 * MIB)") == OUT_OF_MEMORY


def test_what_lies_where_a_pool_grew_is_one_piece_for_programs(one: Program) -> None:
    one.ask("a, b = alloc_async(20 * MIB), alloc_async(14 * MIB)")
    one.ask("write(b + 12 * MIB - 3, 'on both sides')")
    assert one.ask("text(b + 12 * MIB - 3, 13)") == "on both sides"


def test_what_a_pool_keeps_is_not_given_back_while_it_grows_on_a_full_card(node: SimulatedNode, one: Program) -> None:
    one.ask(f"pool_set(pool_of(), {THRESHOLD}, 1 << 40)")
    one.ask("free_async(alloc_async(MIB))")
    one.ask("synchronize()")
    one.ask("b = alloc((info()[0] // (2 * MIB) - 16) * 2 * MIB)")
    assert one.error("alloc_async(80 * MIB)") == OUT_OF_MEMORY
    one.ask("free(b)")
    one.ask("alloc_async(80 * MIB)")
    assert one.ask(f"pool_get(pool_of(), {RESERVED})") == 96 * MIB


def test_pools_are_only_chosen_for_their_own_device(one: Program) -> None:
    one.ask("pool = make_pool(device=1)")
    assert one.error('call("cuDeviceSetMemPool", 0, pool)') == INVALID_VALUE
    assert one.error('call("cuDeviceSetMemPool", 0, 12345)') == INVALID_VALUE


def test_a_managed_pool_is_charged_like_others_and_the_host_sees_what_is_in_it(
    node: SimulatedNode, one: Program
) -> None:
    before = used(node)
    one.ask("pool = make_pool(kind=MANAGED)")
    one.ask("a = alloc_from(pool, 33 * MIB)")
    assert used(node) - before == 2 * CHUNK
    one.ask('poke(a, "seen by both")')
    assert one.ask("text(a, 12)") == "seen by both"
    assert one.ask("attribute(a, 8, INT)") == 1
    one.ask("free_async(a)")
    one.ask("synchronize()")
    one.ask('call("cuMemPoolDestroy", pool)')
    assert used(node) == before


def test_managed_pools_are_chosen_beside_the_others_and_cannot_be_sent(one: Program) -> None:
    one.ask("pool = make_pool(kind=MANAGED)")
    one.ask('call("cuMemSetMemPool", location(), MANAGED, pool)')
    assert one.ask("pool_at(DEVICE, MANAGED) == pool and pool_at(DEVICE, PINNED) == pool_of()")
    assert one.error('call("cuDeviceSetMemPool", 0, pool)') == INVALID_VALUE
    assert one.error("make_pool(kind=MANAGED, shared=True)") == INVALID_VALUE
    assert one.error("pool_at(DOMAIN, MANAGED)") == INVALID_VALUE


def test_a_card_is_one_locality_domain_whose_memory_is_the_cards(one: Program) -> None:
    assert one.ask('told("cuDeviceGetAttribute", 149, 0, kind=INT)') == 1
    assert one.ask("pool_at(DOMAIN, PINNED) == pool_of()")
    one.ask("handle = create(2 * MIB, where=DOMAIN)")
    assert one.error("create(2 * MIB, where=DOMAIN, device=1 << 8)") == INVALID_VALUE


def test_per_thread_forms_do_the_same(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask('a = told("cuMemAllocAsync_ptsz", MIB, 0)')
    one.ask('b = told("cuMemAllocFromPoolAsync_ptsz", MIB, pool_of(), 0)')
    one.ask('call("cuMemFreeAsync_ptsz", a, 0)')
    one.ask('call("cuMemFreeAsync_ptsz", b, 2)')
    one.ask('call("cuStreamSynchronize", 2)')
    one.ask('call("cuMemPoolTrimTo", pool_of(), 0)')
    assert used(node) == before
