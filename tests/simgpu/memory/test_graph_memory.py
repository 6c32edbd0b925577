"""Memory allocated by graphs has a permanent address, and is backed from a launch to its free."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import (
    GRAPH_RESERVED,
    GRAPH_USED,
    GRAPH_USED_HIGH,
    INVALID_VALUE,
    MIB,
    OUT_OF_MEMORY,
    Program,
    used,
)

pytestmark = pytest.mark.slow

BALANCED = "captured(one, lambda: free_async(alloc_async(10 * MIB, one), one))"
OPEN = "captured(one, lambda: alloc_async(10 * MIB, one))"


@pytest.fixture
def streaming(one: Program) -> Program:
    """A program with a stream `one`."""
    one.ask("one = stream()")
    return one


def launch(program: Program, graph: str = "graph") -> None:
    program.ask(f'call("cuGraphLaunch", {graph}, one)')
    program.ask("synchronize(one)")


def account(program: Program) -> list[int]:
    """Bytes that are used and reserved now."""
    return [program.ask(f"graph_memory({which})") for which in (GRAPH_USED, GRAPH_RESERVED)]


def test_what_graphs_free_stays_for_their_next_launch_until_it_is_trimmed(
    node: SimulatedNode, streaming: Program
) -> None:
    before = used(node)
    streaming.ask(f"graph, _ = {BALANCED}")
    streaming.ask(f"other, _ = {BALANCED}")
    for graph in ("graph", "other", "graph"):
        launch(streaming, graph)
    assert used(node) - before == 10 * MIB
    streaming.ask('call("cuDeviceGraphMemTrim", 0)')
    assert used(node) == before
    assert account(streaming) == [0, 0]
    assert streaming.ask(f"graph_memory({GRAPH_USED_HIGH})") == 10 * MIB


def test_all_that_is_kept_for_graphs_is_trimmed(node: SimulatedNode, streaming: Program) -> None:
    before = used(node)
    for size in (4 * MIB, 2 * MIB, 6 * MIB):
        streaming.ask(f"graph, _ = captured(one, lambda: free_async(alloc_async({size}, one), one))")
        launch(streaming)
    assert used(node) - before == 12 * MIB
    streaming.ask('call("cuDeviceGraphMemTrim", 0)')
    assert used(node) == before


def test_one_graph_allocates_and_another_one_frees(streaming: Program) -> None:
    streaming.ask(f"graph, a = {OPEN}")
    streaming.ask("other, _ = captured(one, lambda: free_async(a, one))")
    for _ in range(3):
        launch(streaming)
        assert account(streaming)[0] == 10 * MIB
        launch(streaming, "other")
        assert account(streaming)[0] == 0
    assert streaming.error('call("cuGraphLaunch", other, one)') == INVALID_VALUE


def test_a_launch_that_does_not_fit_says_so_and_one_that_does_finds_memory_that_was_kept(
    node: SimulatedNode, streaming: Program
) -> None:
    streaming.ask("big, a = captured(one, lambda: alloc_async(900 * MIB, one))")
    streaming.ask(f"graph, _ = {BALANCED}")
    launch(streaming)
    streaming.ask("b = alloc(100 * MIB)")
    assert streaming.error('call("cuGraphLaunch", big, one)') == OUT_OF_MEMORY
    streaming.ask("free(b)")
    launch(streaming, "big")
    assert used(node) == 64 * MIB + 900 * MIB


def test_what_was_not_allocated_by_a_graph_is_not_freed_by_one(streaming: Program) -> None:
    streaming.ask("a = alloc_async(64, one)")
    streaming.ask('call("cuStreamBeginCapture_v2", one, 0)')
    assert streaming.error("free_async(a, one)") == INVALID_VALUE
