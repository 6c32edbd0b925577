"""Programs' use of a card beside their allocations."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import Program, program
from support.simgpu import card, simulated_node

MIB = 1 << 20
OUT_OF_MEMORY = 2
MODULE = 2 * MIB
LOCALS = 40 * MIB
"""Each KiB, for as many threads as the card can hold at once."""


def used(node: SimulatedNode) -> int:
    return node.status()[0].used_bytes


def test_local_memory_is_there_from_the_first_launch_of_a_kernel_to_the_end_of_the_context(
    node: SimulatedNode, one: Program
) -> None:
    one.ask("f = kernel('sim_1us_locals_3072')")
    before = used(node)
    assert one.ask("told('cuFuncGetAttribute', 3, f)") == 3072
    assert used(node) == before
    one.ask("run(f)")
    assert used(node) == before + MODULE + 2 * LOCALS
    one.ask("run(kernel('sim_1us_locals_2048'))")
    assert used(node) == before + 2 * MODULE + 2 * LOCALS, "a smaller one finds it there"
    one.ask("run(kernel('sim_1us_locals_4096'))")
    assert used(node) == before + 3 * MODULE + 3 * LOCALS
    one.ask("reset()")
    one.ask("start()")
    assert used(node) == before + 3 * MODULE


def test_a_full_card_has_no_local_memory_for_a_kernel(node: SimulatedNode, one: Program) -> None:
    one.ask("f = kernel('sim_1us_locals_3072')")
    one.ask(f"a = alloc({1024 * MIB - used(node) - MODULE - LOCALS})")
    assert one.error("run(f)") == OUT_OF_MEMORY
    one.ask("free(a)")
    one.ask("run(f)")


def test_a_larger_stack_is_taken_at_once(node: SimulatedNode, one: Program) -> None:
    before = used(node)
    one.ask("call('cuCtxSetLimit', 0, 2048)")
    assert used(node) == before + LOCALS
    assert one.error("call('cuCtxSetLimit', 0, 1 << 20)") == OUT_OF_MEMORY
    assert one.ask("told('cuCtxGetLimit', 0)") == 2048


def test_executables_of_graphs_take_memory_for_each_node_until_they_are_destroyed(tmp_path: Path) -> None:
    small = card("t4", memory_mib=1024, reserved_mib=0, context_mib=64, graph_node_kib=64)
    with simulated_node(tmp_path, cards=(small,)) as node, program(node) as one:
        one.ask("s = stream()")
        one.ask("k = kernel('sim_1us')")
        one.ask("run(k)")
        before = used(node)
        one.ask("g = [repeated(k, 32, s) for _ in range(3)]")
        assert used(node) == before + 6 * MIB
        one.ask("call('cuGraphExecDestroy', g.pop())")
        assert used(node) == before + 4 * MIB
        one.ask("reset()")
        one.ask("start()")
        assert used(node) == before
        one.ask("call('cuGraphExecDestroy', g.pop())")


def test_code_comes_with_the_first_launch_or_eagerly(
    node: SimulatedNode, one: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = used(node)
    one.ask("f = kernel('sim_1us')")
    assert used(node) == before
    monkeypatch.setenv("CUDA_MODULE_LOADING", "EAGER")
    with program(node) as eager:
        before = used(node)
        eager.ask("m = told('cuModuleLoadData', b'anything')")
        assert used(node) == before + MODULE
        eager.ask("call('cuModuleUnload', m)")
        assert used(node) == before
