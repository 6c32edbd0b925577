"""Programs' use of a card beside their allocations."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import MIB, OUT_OF_MEMORY, Program, program, used

MODULE = 2 * MIB
LOCALS = 40 * MIB
"""Each KiB, for as many threads as the card can hold at once."""


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
