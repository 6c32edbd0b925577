"""Copies and memsets of small memory are real; those of large memory only take time."""

from __future__ import annotations

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.memory.programs import CAPTURE_UNSUPPORTED, INVALID_VALUE, MIB, Program, program

pytestmark = pytest.mark.slow

FORMS = ("", "_ptds")
STREAM_FORMS = ("", "_ptsz")


@pytest.mark.parametrize("form", FORMS)
def test_bytes_go_to_the_card_across_it_and_back(one: Program, form: str) -> None:
    one.ask("a, b, data, back = alloc(9000), alloc(9000), bytes(range(250)) * 36, ctypes.create_string_buffer(9000)")
    one.ask(f'call("cuMemcpyHtoD_v2{form}", a, data, 9000)')
    one.ask(f'call("cuMemcpyDtoD_v2{form}", b, a, 9000)')
    one.ask(f'call("cuMemcpyDtoH_v2{form}", back, b, 9000)')
    assert one.ask("back.raw == data") is True
    one.ask(f'call("cuMemcpyPeer{form}", b, None, a + 10, None, 100)')
    assert one.ask("read(b, 100) == list(data[10:110])") is True


@pytest.mark.parametrize("form", STREAM_FORMS)
def test_asynchronous_copies_do_the_same_in_a_stream(one: Program, form: str) -> None:
    one.ask("a, b, data, back = alloc(9000), alloc(9000), bytes(range(250)) * 36, ctypes.create_string_buffer(9000)")
    one.ask(f'call("cuMemcpyHtoDAsync_v2{form}", a, data, 9000, 0)')
    one.ask(f'call("cuMemcpyDtoDAsync_v2{form}", b, a, 9000, 0)')
    one.ask(f'call("cuMemcpyPeerAsync{form}", b, None, a, None, 9000, 0)')
    one.ask(f'call("cuMemcpyDtoHAsync_v2{form}", back, b, 9000, 0)')
    one.ask(f'call("cuStreamSynchronize{form}", 0)')
    assert one.ask("back.raw == data") is True


@pytest.mark.parametrize("form", FORMS)
def test_unified_copies_find_out_by_themselves_where_memory_is(one: Program, form: str) -> None:
    one.ask("a, m, h = alloc(64), managed(64), host(64)")
    one.ask("plain = ctypes.create_string_buffer(b'unified', 64)")
    one.ask("where = ctypes.addressof(plain)")
    for source, target in (("where", "a"), ("a", "m"), ("m", "h"), ("h", "a"), ("a", "where")):
        one.ask(f'call("cuMemcpy{form}", {target}, {source}, 8)')
    assert one.ask("[plain.value.decode(), peek(h, 7), peek(m, 7), text(a, 7)]") == ["unified"] * 4


def test_host_memory_of_both_kinds_is_reached_by_copies_for_devices(one: Program) -> None:
    one.ask("a, h = alloc(64), host(64)")
    one.ask("poke(h, 'pinned')")
    one.ask('call("cuMemcpyDtoD_v2", a, h, 6)')
    assert one.ask("text(a, 6)") == "pinned"
    one.ask("plain = ctypes.create_string_buffer(b'registered', 64)")
    one.ask('call("cuMemHostRegister_v2", ctypes.addressof(plain), 64, 0)')
    one.ask('call("cuMemcpyDtoD_v2", a, ctypes.addressof(plain), 10)')
    assert one.ask("text(a, 10)") == "registered"


def test_boxes_are_cut_out_and_put_in(one: Program) -> None:
    """A 3 by 2 box of a 16 wide picture goes to an array and from there to another place."""
    one.ask("a, b, x = alloc(256), alloc(256), array(8, 8)")
    one.ask("write(a, bytes(range(256)))")
    one.ask("none = 0")
    to_array = "words(5, 2, 2, 0, a, 0, 16) + words(1, 1, 3, 0, 0, x, 0) + words(3, 2)"
    one.ask(f'call("cuMemcpy2D_v2", {to_array})')
    from_array = "words(1, 1, 3, 0, 0, x, 0) + words(10, 4, 2, 0, b, 0, 20) + words(3, 2)"
    one.ask(f'call("cuMemcpy2DUnaligned_v2_ptds", {from_array})')
    assert one.ask("read(b + 90, 3) + read(b + 110, 3)") == [37, 38, 39, 53, 54, 55]


def test_boxes_in_three_dimensions_keep_their_slices_apart(one: Program) -> None:
    one.ask("a, b = alloc(1000), alloc(1000)")
    one.ask("write(a, bytes(n % 251 for n in range(1000)))")
    side = "words(1, 2, 3, 0, 2, 0, {}, 0, 0, 10, 10)"
    one.ask(f'call("cuMemcpy3D_v2", {side.format("a")} + {side.format("b")} + words(4, 2, 2))')
    where = [(3 + z) * 100 + (2 + y) * 10 + 1 for z in range(2) for y in range(2)]
    for start in where:
        assert one.ask(f"read(b + {start}, 4) == read(a + {start}, 4)") is True
    one.ask(f'call("cuMemcpy3DAsync_v2_ptsz", {side.format("a")} + {side.format("b")} + words(4, 2, 2), 0)')
    one.ask(f'call("cuMemcpy3DPeer", {side.format("a")} + {side.format("b")} + words(4, 2, 2))')


@pytest.mark.parametrize(("bits", "value"), [(8, 0x5A), (16, 0xBEEF), (32, 0xDEADBEEF)])
def test_memsets_repeat_their_value_and_touch_nothing_else(one: Program, bits: int, value: int) -> None:
    width = bits // 8
    one.ask("a = alloc(1024)")
    expected = list(value.to_bytes(width, "little")) * 5
    for form in (f"D{bits}_v2", f"D{bits}_v2_ptds"):
        one.ask("write(a, bytes(1024))")
        one.ask(f'call("cuMemset{form}", a + 8, {value}, 5)')
        assert one.ask(f"read(a, {8 + 5 * width + 8})") == [0] * 8 + expected + [0] * 8
    for form in (f"D{bits}Async", f"D{bits}Async_ptsz"):
        one.ask("write(a, bytes(1024))")
        one.ask(f'call("cuMemset{form}", a + 8, {value}, 5, 0)')
        assert one.ask(f"read(a + 8, {5 * width})") == expected
    one.ask("write(a, bytes(1024))")
    one.ask(f'call("cuMemsetD2D{bits}_v2", a, 64, {value}, 5, 3)')
    rows = [one.ask(f"read(a + {64 * row}, {5 * width + 4})") for row in range(4)]
    assert rows == [expected + [0] * 4] * 3 + [[0] * (5 * width + 4)]


def test_memory_beyond_the_data_limit_swallows_what_is_written_and_reads_as_zeros(one: Program) -> None:
    one.ask("small, large = alloc(16 * MIB), alloc(16 * MIB + 1)")
    one.ask("write(small + 16 * MIB - 4, 'data')")
    one.ask("write(large, 'data')")
    assert one.ask("text(small + 16 * MIB - 4, 4)") == "data"
    assert one.ask("text(large, 4)") == "\0\0\0\0"
    one.ask('call("cuMemcpyDtoD_v2", small, large, 16 * MIB)')
    assert one.ask("text(small + 16 * MIB - 4, 4)") == "\0\0\0\0"


def test_copies_take_their_bytes_at_the_rate_of_bus_or_card(node: SimulatedNode) -> None:
    """12 GB/s over the bus, 320 GB/s on the card: simgpud saw the card busy for at least so long."""
    with program(node, device=1) as two:
        two.ask("a, b, h = alloc(120 * MIB), alloc(120 * MIB), host(120 * MIB)")
        two.ask("write(a, 'x')")
        before = node.status()[1].processes[0].busy_ns
        two.ask('call("cuMemcpyHtoD_v2", a, ctypes.c_void_p(h), 120 * MIB)')
        over_bus = node.status()[1].processes[0].busy_ns
        two.ask('call("cuMemcpyDtoD_v2", b, a, 120 * MIB)')
        two.ask("synchronize()")
        on_card = node.status()[1].processes[0].busy_ns
        assert over_bus - before == 2000 + 120 * MIB * 10**9 // 12_000_000_000
        assert on_card - over_bus == 2000 + 120 * MIB * 10**9 // 320_000_000_000


def test_empty_copies_do_nothing_and_are_no_error(one: Program) -> None:
    one.ask("a = alloc(64)")
    one.ask('call("cuMemcpyHtoD_v2", a, b"", 0)')
    one.ask('call("cuMemcpyDtoDAsync_v2", a, a, 0, 0)')
    one.ask('call("cuMemsetD8_v2", a, 1, 0)')


@pytest.mark.parametrize(
    "wrong",
    [
        'call("cuMemcpyHtoD_v2", 4096, b"x", 1)',
        'call("cuMemcpyDtoH_v2", back, a + 60, 8)',
        'call("cuMemcpyDtoD_v2", a, a + 4096, 8)',
        'call("cuMemcpyHtoD_v2", a, None, 1)',
        'call("cuMemcpyHtoD_v2", a, b"x", 1 << 63)',
        'call("cuMemcpy2D_v2", None)',
        'call("cuMemcpy2D_v2", words(0, 0, 2, 0, a, 0, 1, 0, 0, 2, 0, a, 0, 16, 8, 2))',
        'call("cuMemsetD32_v2", a + 2, 1, 1)',
        'call("cuMemsetD8_v2", a, 1, 65)',
        'call("cuMemsetD2D8_v2", a, 4, 1, 8, 2)',
    ],
)
def test_what_lies_outside_is_refused(one: Program, wrong: str) -> None:
    one.ask("a, back = alloc(64), ctypes.create_string_buffer(64)")
    assert one.error(wrong) == INVALID_VALUE


def test_in_a_graph_bytes_move_whenever_it_is_launched(one: Program) -> None:
    one.ask("one, a, b, h = stream(), alloc(64), alloc(64), host(64)")
    one.ask(
        "graph, _ = captured(one, lambda: several((lambda: call('cuMemcpyHtoDAsync_v2', a, ctypes.c_void_p(h), 8, one),"
        " lambda: call('cuMemsetD8Async', a + 8, 0x21, 2, one), lambda: call('cuMemcpyDtoDAsync_v2', b, a, 10, one))))"
    )
    for written in ("first   ", "second  "):
        one.ask(f"poke(h, '{written}')")
        one.ask('call("cuGraphLaunch", graph, one)')
        one.ask("synchronize(one)")
        assert one.ask("text(b, 10)") == written + "!!"


def test_synchronous_copies_and_allocations_break_a_capture(one: Program) -> None:
    one.ask("one, a = stream(), alloc(64)")
    for unsafe in ("write(a, 'x')", "alloc(64)", "free(a)", "managed(64)", 'call("cuMemsetD8_v2", a, 1, 1)'):
        one.ask('call("cuStreamBeginCapture_v2", one, 0)')
        assert one.error(unsafe) == CAPTURE_UNSUPPORTED
        assert one.error('call("cuStreamEndCapture", one, ctypes.byref(WORD()))') != 0
    assert one.ask("span(a)[1]") == 64
