"""For any actions of a client and a runtime in any order, each gets what the other sent, and windows end up equal.

The numbers are a scenario: calls, intercepted calls, odd messages, cancels, credits, decisions, pieces of any size.
Both ends are models that fail when the proxy sends them anything wrong.
"""

from __future__ import annotations

from typing import Final

from support.splice.world import World

SEEDS: Final = (
    b"\0\3\1\0\2\5\0\x0b\0\5\x0b\1\5\2\5\0\0\0",
    b"\1\5\6\1\2\5\0\0\x0b\0\5\x0b\1\5\x09\0\2\x06\5\x07\0\5\x0b\0\5",
    b"\1\0\3\0\2\5\0\0\x0b\0\1\x0f\0\x10\x0b\2\5\x0b\3\5\x09\0\1\x08\0\2",
    b"\1\5\3\0\2\5\0\0\x0b\0\5\x05\0\0\x0b\0\5\x0f\2\x0b\3\5\x0b\0\5",
)
_LONGEST: Final = 3000


def target(data: bytes) -> str:
    world = World()
    world.play(iter(data[:_LONGEST]))
    world.finish()
    if world.pair.over is None:
        world.check()
    endings = ",".join(sorted({ending.value for ending in world.endings.values()}))
    return f"{world.pair.over} {endings}"
