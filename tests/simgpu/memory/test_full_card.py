"""A full, lost or failing card returns errors, and nothing is lost with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import (
    INVALID_VALUE,
    OUT_OF_MEMORY,
    UNAVAILABLE,
    Program,
    program,
    used,
)
from support.simgpu import card, simulated_node

pytestmark = pytest.mark.slow

EVERY_KIND = (
    ("cuMemAlloc_v2", "200 * MIB"),
    ("cuMemAllocManaged", "200 * MIB, 1"),
    ("cuMemAllocAsync", "200 * MIB, 0"),
    ("cuMemAllocFromPoolAsync", "200 * MIB, pool_of(), 0"),
    ("cuMemCreate", "200 * MIB, properties(), 0"),
    ("cuArray3DCreate_v2", "words(100_000, 2000, 0) + words(1, 1, 0, 0, width=4)"),
    ("cuMipmappedArrayCreate", "words(100_000, 2000, 0) + words(1, 1, 0, 0, width=4), 1"),
)


@pytest.mark.parametrize(("name", "arguments"), EVERY_KIND)
def test_what_does_not_fit_is_refused_and_the_pointer_untouched(
    node: SimulatedNode, one: Program, name: str, arguments: str
) -> None:
    one.ask("filling = alloc(800 * MIB)")
    before = used(node)
    one.ask("value = WORD(4711)")
    assert one.error(f'call("{name}", ctypes.byref(value), {arguments})') == OUT_OF_MEMORY
    assert one.ask("value.value") == 4711
    assert used(node) == before
    one.ask("free(filling)")
    one.ask(f'call("{name}", ctypes.byref(value), {arguments})')


def test_an_instance_of_a_card_is_full_when_its_own_memory_is(tmp_path: Path) -> None:
    divided = card("h100", mig=("1g.10gb", "1g.10gb"))
    with simulated_node(tmp_path, cards=(divided,)) as node, program(node) as one:
        index = next(number for number, status in node.status().items() if status.processes)
        total = node.status()[index].total_bytes
        assert one.ask("info()") == [total - used(node, index), total]
        assert one.error(f"alloc({total})") == OUT_OF_MEMORY


def test_absurd_sizes_do_not_fit(one: Program) -> None:
    for size in (1 << 43, 1 << 63, (1 << 64) - 1):
        assert one.error(f"alloc({size})") == OUT_OF_MEMORY
        assert one.error(f"alloc_async({size})") == OUT_OF_MEMORY
        assert one.error(f"managed({size})") == OUT_OF_MEMORY
    assert one.error("pitched(1 << 40, 1 << 40)") == OUT_OF_MEMORY
    assert one.error("create(1 << 50)") == OUT_OF_MEMORY


def test_a_lost_card_has_no_memory_any_more(node: SimulatedNode, one: Program) -> None:
    one.ask("a = alloc(64)")
    node.control("lose 0")
    for everything in ("alloc(64)", "free(a)", "write(a, 'x')", "alloc_async(64)", "managed(64)", "info()"):
        assert one.error(everything) == UNAVAILABLE
    one.ask("start(1)")
    one.ask("write(alloc(64), 'the other card works')")


def test_without_simgpud_calls_fail_and_none_hangs(node: SimulatedNode, one: Program) -> None:
    one.ask("a = alloc(64)")
    node.kill()
    assert one.error("alloc(64 * MIB)") not in (0, OUT_OF_MEMORY, INVALID_VALUE)
    assert one.error("create(2 * MIB)") not in (0, OUT_OF_MEMORY)
    assert one.error("ipc_handle(a)") != 0
