"""A pointer's attributes."""

from __future__ import annotations

import pytest

from simgpu.memory.programs import MIB, Program

pytestmark = pytest.mark.slow

CONTEXT, TYPE, DEVICE_POINTER, HOST_POINTER, SYNC, BUFFER, MANAGED, ORDINAL, IPC = 1, 2, 3, 4, 6, 7, 8, 9, 10
START, SIZE, MAPPED, HANDLE_TYPES, POOL = 11, 12, 13, 14, 17
HOST, DEVICE = 1, 2


@pytest.mark.parametrize(
    ("made", "traits"),
    [
        ("alloc(1000)", (DEVICE, 0, 1)),
        ("alloc_async(1000)", (DEVICE, 0, 0)),
        ("managed(1000)", (DEVICE, 1, 0)),
        ("host(1000)", (HOST, 0, 0)),
        ("opened(create(2 * MIB), 2 * MIB)", (DEVICE, 0, 0)),
    ],
)
def test_each_kind_of_memory(one: Program, made: str, traits: tuple[int, int, int]) -> None:
    kind, managed, ipc = traits
    one.ask(f"a = {made}")
    start = one.ask("a")
    assert one.ask(f"attribute(a + 10, {TYPE}, ctypes.c_uint)") == kind
    assert one.ask(f"attribute(a + 10, {MANAGED}, ctypes.c_uint)") == managed
    assert one.ask(f"attribute(a + 10, {IPC}, ctypes.c_uint)") == ipc
    assert one.ask(f"attribute(a + 10, {START})") == start
    assert one.ask(f"attribute(a + 10, {SIZE})") in (1000, 2 * MIB)
    assert one.ask(f"attribute(a + 10, {DEVICE_POINTER})") == start + 10
    assert one.ask(f"attribute(a + 10, {ORDINAL}, INT)") == 0
    assert one.ask(f"attribute(a + 10, {MAPPED}, ctypes.c_uint)") == 1
    assert (one.error(f"attribute(a + 10, {HOST_POINTER})") == 0) is (kind == HOST or managed == 1)


def test_every_allocation_has_a_number_of_its_own(one: Program) -> None:
    one.ask("a = alloc(64)")
    first = one.ask(f"attribute(a, {BUFFER})")
    one.ask("free(a)")
    assert one.ask("alloc(64)") == one.ask("a")
    assert one.ask(f"attribute(a, {BUFFER})") > first


def test_memory_of_a_pool_names_it(one: Program) -> None:
    one.ask("pool = make_pool(shared=True)")
    one.ask("a = alloc_from(pool, 64)")
    assert one.ask(f"attribute(a, {POOL})") == one.ask("pool")
    assert one.ask(f"attribute(a, {HANDLE_TYPES})") == 1
    assert one.ask(f"attribute(alloc(64), {POOL})") == 0
