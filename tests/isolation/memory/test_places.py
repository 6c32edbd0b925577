"""Placement of memory, and cards that fail to provide it: the account counts what was provided."""

from __future__ import annotations

import pytest

from isolation.memory.stage import MIB, OUT_OF_MEMORY, Place, Program
from partage_isolation.wire.packets import Flag, What
from support.simgpu import driver_past

pytestmark = pytest.mark.slow
INVALID_VALUE, NOT_SUPPORTED = 1, 801


@pytest.mark.parametrize("line", ["create(2 << 20, where=7)", "create(2 << 20, where=5)"])
def test_memory_at_a_place_of_an_unknown_kind_is_refused(one: Program, line: str) -> None:
    assert one.error(line) == OUT_OF_MEMORY


def test_memory_of_the_host_is_left_to_the_driver(one: Program) -> None:
    assert one.error("create(2 << 20, where=HOST)") == NOT_SUPPORTED
    assert one.error("make_pool(where=HOST)") == NOT_SUPPORTED
    assert one.used == 0


def test_a_pool_that_nobody_was_given_has_no_memory(one: Program) -> None:
    one.ask("p = told('cuMemPoolImportFromShareableHandle', export_pool(make_pool(shared=True)), FD, 0)")
    assert one.error("alloc_from(p, 1 << 20)") == INVALID_VALUE
    assert one.error("alloc_from(12345, 1 << 20)") == INVALID_VALUE


def test_memory_of_a_domain_of_a_card_that_was_not_granted_is_refused(one: Program) -> None:
    assert one.error("create(2 << 20, where=DOMAIN, device=1)") == OUT_OF_MEMORY
    assert one.error("make_pool(where=DOMAIN, device=1)") == OUT_OF_MEMORY
    assert one.error("make_pool(kind=MANAGED, device=1)") == OUT_OF_MEMORY


@pytest.mark.parametrize("line", ["alloc(1 << 20)", "alloc_async(1 << 20)", "array(100, 100)"])
def test_a_context_that_was_made_past_the_library_is_charged_with_the_first_memory_in_it(
    place: Place, one: Program, line: str
) -> None:
    one.ask(f"driver = ctypes.CDLL({str(driver_past(place.node))!r})")
    place.broker.wait(lambda: len(set(contexts(place, one))) == 1, "its first context is told, too")
    before = contexts(place, one)
    one.ask("made = driver.cuCtxCreate_v2(ctypes.byref(WORD()), 0, 0)")
    one.ask(f"a = {line}")
    one.ask(f"b = {line}")
    assert contexts(place, one) == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize("line", ["told('cuGLCtxCreate_v2', 0, 0)", "told('cuVDPAUCtxCreate_v2', 0, 0, 0, bytes(8))"])
def test_a_context_for_graphics_is_asked_room_for_before_it_is_made(place: Place, one: Program, line: str) -> None:
    place.broker.wait(lambda: len(set(contexts(place, one))) == 1, "its first context is told, too")
    asked, made = contexts(place, one)
    one.ask(f"c = {line}")
    place.broker.wait(lambda: contexts(place, one) == (asked + 1, made + 1), "one more is asked for and then told")
    one.ask("call('cuCtxDestroy_v2', c)")


def contexts(place: Place, one: Program) -> tuple[int, int]:
    """How often a context was requested, and how often one was reported as created."""
    heard = [packet for pid, packet in place.broker.heard if pid == one.pid]
    return (
        sum(packet.what == What.CONTEXT for packet in heard),
        sum(packet.what == What.AMOUNTS and Flag.CONTEXT_MADE in Flag(packet.flags) for packet in heard),
    )


# ---- Cards that fail -------------------------------------------------------------------------------------------------


EXECUTABLE = 64 << 10
"""The memory of an executable graph of two nodes."""
WAYS = {
    "alloc": "alloc(3 << 20)",
    "managed": "managed(3 << 20)",
    "pitch": "pitched(1000, 3000)",
    "pool": "alloc_async(3 << 20)",
    "own pool": "alloc_from(p, 3 << 20)",
    "virtual": "create(4 << 20)",
    "array": "array(2000, 2000)",
    "mipmaps": "mipmaps(1024, 1024, 4)",
    "graph": "call('cuGraphLaunch', g, s)",
}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_card_refused_is_not_charged(one: Program, way: str) -> None:
    one.ask("s = stream()")
    one.ask("p = make_pool()")
    one.ask("g = captured(s, lambda: free_async(alloc_async(9 << 20, s), s))[0]")
    one.ask("a = alloc(5 << 20)")
    one.place.node.control("fail 0 1")
    assert one.error(WAYS[way]) == OUT_OF_MEMORY
    assert one.used == one.held == 6 * MIB + EXECUTABLE
    one.ask(WAYS[way])
    assert one.used == one.held > 6 * MIB + EXECUTABLE


def test_a_full_card_says_so_below_the_limit(one: Program) -> None:
    with one.place.program() as other:
        one.place.broker.limits[0] = 4096 * MIB
        other.ask("alloc(700 << 20)")
        assert one.error("alloc(300 << 20)") == OUT_OF_MEMORY
        assert one.used == one.held == 0
