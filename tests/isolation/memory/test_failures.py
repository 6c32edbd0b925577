"""A card that fails to give memory, as drivers do below the limit: the account is as if nothing had been asked."""

from __future__ import annotations

import pytest

from isolation.memory.stage import MIB, OUT_OF_MEMORY, Program

pytestmark = pytest.mark.slow
EXECUTABLE = 64 << 10
"""What a graph of two nodes takes by itself."""
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
