"""A hostile program in a container, attacking its broker: `attacks.py NAME SOCKET [WORD...]`.

Each attack goes on until its stdin ends, then prints its result as a line of JSON. It implements the protocol itself,
as an attacker could who has read the library's source.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import What
from partage_simgpu.client import Cuda
from support.broker_client import Client
from support.sockets import connected

_MOST: Final = (1 << 64) - 1
_LEAST: Final = 1000
_SEED: Final = 8
Told = dict[str, Any]


def _say(told: Told) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def goes_on(sent: int) -> bool:
    """True until stdin ends, and for a while in any case."""
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return sent < _LEAST or not ready


def rest() -> None:
    """Wait for the end of stdin."""
    sys.stdin.read()


# ---- attacks


def forge(path: str) -> Told:
    """Packets of every kind with numbers of every size, in any order, with and without HELLO."""
    chance, sent, closed = random.Random(_SEED), 0, 0  # noqa: S311 (choices that can be repeated)
    numbers = (0, 1, 2, 63, 1 << 21, 1 << 32, 1 << 62, 1 << 63, _MOST - 1, _MOST)
    while goes_on(sent):
        with suppress(OSError), connected(Path(path)) as one:
            one.setblocking(False)
            closed += 1
            if chance.random() < 0.5:
                one.send(wire.question(What.HELLO))
            for _ in range(200):
                what = chance.choice([*What, 0, 99, 0x8001, 0xFFFF])
                words = b"".join(chance.choice(numbers).to_bytes(8, "little") for _ in range(6))
                packet = wire.question(
                    what, card=chance.choice((0, 0, 1, 7, 0xFFFF)), flags=chance.randrange(8), body=words
                )
                one.send(packet if chance.random() < 0.9 else os.urandom(wire.BYTES))
                sent += 1
                with suppress(BlockingIOError):
                    one.recv(4096)
    return {"sent": sent, "connections": closed}


def take_past(path: str, mib: str) -> Told:
    """Allocate memory bypassing the library and the broker, after only a HELLO."""
    with Client(Path(path)) as one, Cuda() as cuda:
        one.hello()
        cuda.allocate(int(mib) << 20)
        _say({})
        rest()
    return {}


ATTACKS: Final[dict[str, Callable[..., Told]]] = {attack.__name__: attack for attack in (forge, take_past)}


def main() -> None:
    name, path, *words = sys.argv[1:]
    sys.stdout.write(json.dumps(ATTACKS[name](path, *words)) + "\n")


if __name__ == "__main__":
    main()
