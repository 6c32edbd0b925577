"""Copies and memsets of small memory are real; those of large memory only take time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import MIB, Program, program
from support.simgpu import simulated_node

pytestmark = pytest.mark.slow


def test_host_memory_of_both_kinds_is_reached_by_copies_for_devices(one: Program) -> None:
    one.ask("a, h = alloc(64), host(64)")
    one.ask("poke(h, 'pinned')")
    one.ask('call("cuMemcpyDtoD_v2", a, h, 6)')
    assert one.ask("text(a, 6)") == "pinned"
    one.ask("plain = ctypes.create_string_buffer(b'registered', 64)")
    one.ask('call("cuMemHostRegister_v2", ctypes.addressof(plain), 64, 0)')
    one.ask('call("cuMemcpyDtoD_v2", a, ctypes.addressof(plain), 10)')
    assert one.ask("text(a, 10)") == "registered"


@pytest.mark.parametrize(("bits", "value"), [(8, 0x5A), (16, 0xBEEF), (32, 0xDEADBEEF)])
def test_memsets_repeat_their_value_and_touch_nothing_else(one: Program, bits: int, value: int) -> None:
    width = bits // 8
    one.ask("a = alloc(1024)")
    expected = list(value.to_bytes(width, "little")) * 5
    for form in (f"D{bits}_v2", f"D{bits}_v2_ptds"):
        one.ask("write(a, bytes(1024))")
        one.ask(f'call("cuMemset{form}", a + 8, {value}, 5)')
        assert one.ask(f"read(a, {8 + 5 * width + 8})") == [0] * 8 + expected + [0] * 8


def test_a_small_card_keeps_all_bytes(one: Program) -> None:
    one.ask("large = alloc(100 * MIB)")
    one.ask("write(large + 100 * MIB - 4, 'data')")
    assert one.ask("text(large + 100 * MIB - 4, 4)") == "data"


def test_large_memory_of_a_large_card_swallows_what_is_written_and_reads_as_zeros(tmp_path: Path) -> None:
    with simulated_node(tmp_path, cards=("t4",)) as node, program(node) as one:
        one.ask("small, large = alloc(16 * MIB), alloc(16 * MIB + 1)")
        one.ask("write(small + 16 * MIB - 4, 'data')")
        one.ask("write(large, 'data')")
        assert one.ask("text(small + 16 * MIB - 4, 4)") == "data"
        assert one.ask("text(large, 4)") == "\0\0\0\0"
        one.ask("h = host(16 * MIB); ctypes.memmove(h + 16 * MIB - 4, b'data', 4); None")
        one.ask('call("cuMemcpyDtoH_v2", ctypes.c_void_p(h), large, 16 * MIB)')
        assert one.ask("ctypes.string_at(h + 16 * MIB - 4, 4).hex()") == "00000000"
        one.ask('call("cuMemcpyDtoD_v2", small, large, 16 * MIB)')
        assert one.ask("text(small + 16 * MIB - 4, 4)") == "\0\0\0\0"


def test_copies_take_their_bytes_at_the_rate_of_bus_or_card(node: SimulatedNode) -> None:
    """12 GB/s over the bus, which takes none of the card's own time; 320 GB/s on the card, which simgpud saw."""
    with program(node, device=1) as two:
        two.ask("a, b, h = alloc(120 * MIB), alloc(120 * MIB), host(120 * MIB)")
        two.ask("write(a, 'x')")
        before, began_s = node.status()[1].processes[0].busy_ns, time.monotonic()
        two.ask('call("cuMemcpyHtoD_v2", a, ctypes.c_void_p(h), 120 * MIB)')
        assert time.monotonic() - began_s >= 120 * MIB / 12e9
        over_bus = node.status()[1].processes[0].busy_ns
        two.ask('call("cuMemcpyDtoD_v2", b, a, 120 * MIB)')
        two.ask("synchronize()")
        on_card = node.status()[1].processes[0].busy_ns
        assert over_bus == before
        assert on_card - over_bus == 2000 + 120 * MIB * 10**9 // 320_000_000_000


def test_in_a_graph_bytes_move_whenever_it_is_launched(one: Program) -> None:
    one.ask("one, a, h = stream(), alloc(64), host(64)")
    one.ask("graph, _ = captured(one, lambda: call('cuMemcpyHtoDAsync_v2', a, ctypes.c_void_p(h), 8, one))")
    for written in ("first   ", "second  "):
        one.ask(f"poke(h, '{written}')")
        one.ask('call("cuGraphLaunch", graph, one)')
        one.ask("synchronize(one)")
        assert one.ask("text(a, 8)") == written
