"""Memory of one process in another: the same bytes, for as long as either holds them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import (
    CHUNK,
    INVALID_VALUE,
    MIB,
    Program,
    program,
    received,
    used,
)
from support.steered import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def two(node: SimulatedNode) -> Iterator[Program]:
    with program(node) as started:
        yield started


def test_both_see_what_either_writes(one: Program, two: Program) -> None:
    one.ask("before = alloc(1000)")
    one.ask("a = alloc(100_000)")
    one.ask("write(a, 'from one')")
    handle = one.ask("ipc_handle(a)")
    two.ask(f"b = ipc_open('{handle}')")
    assert two.ask("text(b, 8)") == "from one"
    two.ask("write(b + 99_990, 'from two')")
    assert one.ask("text(a + 99_990, 8)") == "from two"
    assert two.ask("span(b)") == [two.ask("b"), 100_000]


def test_memory_outlives_the_process_that_made_it(node: SimulatedNode, one: Program, two: Program) -> None:
    before = used(node)
    one.ask("a = alloc(10 * MIB)")
    one.ask("write(a, 'last words')")
    two.ask(f"b = ipc_open('{one.ask('ipc_handle(a)')}')")
    one.kill()
    eventually(lambda: used(node) == before - 64 * MIB + 10 * MIB, "only the shared memory is left")
    assert two.ask("text(b, 10)") == "last words"
    two.ask("ipc_close(b)")
    assert used(node) == before - 64 * MIB


def test_memory_outlives_its_free_and_is_not_written_over(node: SimulatedNode, one: Program, two: Program) -> None:
    one.ask("a = alloc(4 * MIB)")
    one.ask("write(a, 'kept')")
    two.ask(f"b = ipc_open('{one.ask('ipc_handle(a)')}')")
    one.ask("free(a)")
    one.ask("[write(alloc(4 * MIB), 'over') for _ in range(5)] and None")
    assert two.ask("text(b, 4)") == "kept"
    assert used(node) == 2 * 64 * MIB + 6 * 4 * MIB


FORGED = (
    (0, "00" * 4),
    (4, "03000000"),
    (8, "00" * 16),
    (24, "ff" * 8),
    (24, "0000000000200000"),
    (32, "ff" * 8),
    (40, "ff" * 8),
    (40, "00" * 8),
)
"""Offsets in a handle, and the bytes written there."""


def test_forged_handles_are_refused(node: SimulatedNode, one: Program, two: Program) -> None:
    handle = one.ask("ipc_handle(alloc(100))")
    before = used(node)
    for first, wrong in FORGED:
        forged = handle[: 2 * first] + wrong + handle[2 * first + len(wrong) :]
        assert two.error(f"ipc_open('{forged}')") != 0
        assert used(node) == before
    assert two.ask(f"text(ipc_open('{handle}'), 1)") == "\0"


def test_a_stopped_exporter_stops_nobody(one: Program, two: Program) -> None:
    one.ask("a = alloc(MIB)")
    one.ask("write(a, 'asleep')")
    handle = one.ask("ipc_handle(a)")
    one.send(signal.SIGSTOP)
    try:
        assert two.ask(f"text(ipc_open('{handle}'), 6)") == "asleep"
    finally:
        one.send(signal.SIGCONT)


def test_virtual_memory_travels_as_a_descriptor(node: SimulatedNode, one: Program) -> None:
    one.ask("h = create(4 * MIB, shared=True)")
    one.ask("a = opened(h, 4 * MIB)")
    one.ask("write(a + 3 * MIB, 'through')")
    before = used(node)
    with received(one, one.ask("export_memory(h)")) as file, program(node, pass_fds=(file,)) as two:
        two.ask(f"h = import_memory({file})")
        two.ask("b = opened(h, 4 * MIB)")
        assert two.ask("text(b + 3 * MIB, 7)") == "through"
        one.ask("release(h)")
        one.ask("unmap(a, 4 * MIB)")
        assert used(node) == before + 64 * MIB
        two.ask("release(h)")
        assert used(node) == before + 64 * MIB
        two.ask("unmap(b, 4 * MIB)")
        assert used(node) == before + 64 * MIB - 4 * MIB


def test_memory_that_was_not_made_for_it_is_not_exported(one: Program) -> None:
    assert one.error("export_memory(create(2 * MIB))") == INVALID_VALUE
    assert one.error("export_pool(make_pool())") == INVALID_VALUE
    assert one.error("export_pointer(alloc_async(64))") == INVALID_VALUE


def test_descriptors_of_anything_else_are_refused(one: Program) -> None:
    one.ask("import os")
    one.ask('zero, empty = os.open("/dev/zero", 0), os.open("/dev/null", 0)')
    for wrong in ("zero", "empty", "999", "export_memory(create(2 * MIB, shared=True))"):
        assert one.error(f"import_pool({wrong})") == INVALID_VALUE
    for wrong in ("zero", "empty", "999", "export_pool(make_pool(shared=True))"):
        assert one.error(f"import_memory({wrong})") == INVALID_VALUE


def test_pools_and_their_pointers_travel(node: SimulatedNode, one: Program) -> None:
    one.ask("pool = make_pool(shared=True)")
    one.ask("[alloc_from(pool, 5000) for _ in range(3)] and None")
    one.ask("a = alloc_from(pool, 70_000)")
    one.ask("write(a, 'pooled')")
    before = used(node)
    with received(one, one.ask("export_pool(pool)")) as file, program(node, pass_fds=(file,)) as two:
        two.ask(f"pool = import_pool({file})")
        two.ask(f"b = import_pointer(pool, '{one.ask('export_pointer(a)')}')")
        assert used(node) == before + 64 * MIB
        assert two.ask("text(b, 6)") == "pooled"
        assert two.error("alloc_from(pool, 64)") == INVALID_VALUE
        two.ask("write(b, 'shared')")
        assert one.ask("text(a, 6)") == "shared"
        two.ask("free_async(b)")
        assert two.error("free_async(b)") == INVALID_VALUE
    eventually(lambda: used(node) == before, "the importer is gone")
    assert one.ask("pool_get(pool, 5)") == CHUNK
