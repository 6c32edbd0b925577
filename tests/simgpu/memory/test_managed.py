"""Managed memory on a card that pages it: it may exceed the card, which costs time at every use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from partage_simgpu.node import SimulatedNode
from partage_simgpu.profiles import Managed
from simgpu.memory.programs import MIB, OUT_OF_MEMORY, Program, program, used
from support.simgpu import card, simulated_node
from support.steered import eventually

pytestmark = pytest.mark.slow

CARD: Final = 1024 * MIB
CONTEXT: Final = 64 * MIB
FAULTS, EVICTIONS = 8, 4
"""Bytes in a nanosecond."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    rates = Managed(fault_gb_per_s=FAULTS, evict_gb_per_s=EVICTIONS)
    pages = card("t4", memory_mib=CARD // MIB, reserved_mib=0, context_mib=CONTEXT // MIB, module_mib=0, managed=rates)
    with simulated_node(tmp_path, cards=(pages,)) as made:
        yield made


@pytest.fixture
def two(node: SimulatedNode) -> Iterator[Program]:
    with program(node) as started:
        yield started


def held(node: SimulatedNode, one: Program) -> int:
    return next(each.bytes for each in node.status()[0].processes if each.pid == one.pid) - CONTEXT


def busy_ns(node: SimulatedNode, one: Program, line: str) -> int:
    """Card time of the program while it executes the line."""
    before = next(each.busy_ns for each in node.status()[0].processes if each.pid == one.pid)
    one.ask(line)
    one.ask("synchronize()")
    return next(each.busy_ns for each in node.status()[0].processes if each.pid == one.pid) - before


def test_what_has_no_room_is_on_the_host(node: SimulatedNode, one: Program, two: Program) -> None:
    one.ask("managed(600 * MIB)")
    two.ask("managed(600 * MIB)")
    assert held(node, one) == 600 * MIB
    assert held(node, two) == CARD - 2 * CONTEXT - 600 * MIB
    assert used(node) == CARD


def test_kernels_wait_for_what_they_touch_and_for_what_must_leave(
    node: SimulatedNode, one: Program, two: Program
) -> None:
    one.ask("managed(600 * MIB)")
    two.ask("managed(600 * MIB)")
    missing = 600 * MIB - held(node, two)
    waits_ns = missing // FAULTS + missing // EVICTIONS
    assert busy_ns(node, two, "launch('sim_1ms_managed')") == pytest.approx(1e6 + waits_ns, rel=0.001)
    assert held(node, two) == 600 * MIB
    assert held(node, one) == 600 * MIB - missing
    assert busy_ns(node, two, "launch('sim_1ms_managed')") == pytest.approx(1e6, rel=0.001)
    assert busy_ns(node, one, "launch('sim_1ms_managed')") == pytest.approx(1e6 + waits_ns, rel=0.001)
    assert busy_ns(node, two, "launch('sim_1ms')") == pytest.approx(1e6, rel=0.001)


def test_more_than_the_whole_card_is_missing_each_time(node: SimulatedNode, one: Program) -> None:
    """Memory that is used cyclically and does not fit was always evicted just before."""
    one.ask("[managed(128 * MIB) for _ in range(16)]")
    waits_ns = 2048 * MIB // FAULTS + 2048 * MIB // EVICTIONS
    one.ask("launch('sim_1ms_managed')")
    for _ in range(2):
        assert busy_ns(node, one, "launch('sim_1ms_managed')") >= waits_ns * 0.9
    assert used(node) == CARD


def test_other_memory_has_it_leave_unless_even_that_is_not_enough(
    node: SimulatedNode, one: Program, two: Program
) -> None:
    one.ask("managed(800 * MIB)")
    two.ask("alloc(500 * MIB)")
    assert held(node, one) == CARD - 2 * CONTEXT - 500 * MIB
    assert two.error("alloc(500 * MIB)") == OUT_OF_MEMORY
    assert held(node, one) == CARD - 2 * CONTEXT - 500 * MIB


def test_all_of_it_is_free_when_its_program_ends(node: SimulatedNode) -> None:
    with program(node) as one, program(node) as two:
        for each in (one, two):
            each.ask("managed(700 * MIB)")
            each.ask("launch('sim_1ms_managed')")
        one.ask("m = managed(100 * MIB)")
        one.ask("free(m)")
    eventually(lambda: used(node) == 0 or None, "the card is empty")
