"""A process of a container, controlled by tests: it evaluates each line of its input and prints the result.

Lines can use `client`, which talks to the broker, `cuda`, which holds memory of the simulated card, and the functions
below.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from partage_isolation.ledger.pieces import Shared
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Result
from partage_simgpu.client import Cuda
from support.broker_client import Client
from support.sockets import connected

_PATH = Path(sys.argv[1])
_held: list[tuple[int, int]] = []
_names: dict[str, Any] = {}


def hello() -> int:
    _names["client"] = client = Client(_PATH)
    result = int(client.hello())
    threading.Thread(target=_obey, args=(client,), daemon=True).start()
    return result


def _obey(client: Client) -> None:
    """As the library's helper thread does."""
    while True:
        signals = client.signals
        if signals is None or signals.fileno() < 0:
            time.sleep(0.01)  # another notification may follow
            continue
        try:
            if select.select([signals], [], [], 0.1)[0]:
                client.obey()
        except (OSError, ValueError, AssertionError):
            time.sleep(0.01)  # a broken connection; another may follow


def context() -> bool:
    """Create a context on the card, if the broker permits."""
    client: Client = _names["client"]
    if not client.context():
        return False
    _names["cuda"] = Cuda()
    client.amounts(flags=Flag.CONTEXT_MADE)
    return True


def take(amount: int) -> bool:
    """As the library does: the broker first, then the driver."""
    client: Client = _names["client"]
    if not client.take(amount):
        return False
    _held.append((_names["cuda"].allocate(amount), amount))
    return True


def give() -> int:
    client: Client = _names["client"]
    address, amount = _held.pop()
    _names["cuda"].free(address)
    client.give(amount)
    return amount


def child(seconds: float) -> int:
    """A child that inherits all our descriptors, and lives this long."""
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/sleep", ["sleep", str(seconds)])  # noqa: S606  closes what is to be closed at exec
    return pid


def forked(seconds: float) -> int:
    """A fork without exec, with our sockets."""
    pid = os.fork()
    if pid == 0:
        os.closerange(0, 3)
        time.sleep(seconds)
        os._exit(0)
    return pid


def flood_begins(count: int) -> None:
    """Keep this many connections that send HELLO with an unknown token, as fast as possible, forever."""
    peers = [connected(_PATH) for _ in range(count)]
    threading.Thread(target=_flood, args=(peers,), daemon=True).start()


def _flood(peers: list[socket.socket]) -> None:
    hello = wire.question(wire.What.HELLO, body=wire.hello_body(b"x" * 16))
    for peer in peers:
        peer.setblocking(False)
    while True:
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.send(hello)
            with contextlib.suppress(OSError):
                peer.recv(100)


def growth_begins(names: int) -> None:
    """Grow one piece of memory under this many names without end: each change updates all its rows."""
    client: Client = _names["client"]
    for name in range(1, names + 1):
        client.ask(wire.What.EXPORT, body=wire.shared_body(Shared(name, 1, 1)))
    threading.Thread(target=_grow, args=(client,), daemon=True).start()


def _grow(client: Client) -> None:
    for size in itertools.count(2):
        client.ask(wire.What.EXPORT, body=wire.shared_body(Shared(1, 1, size)))


def execute() -> None:
    """Execute this program again in the same process."""
    os.execv(sys.executable, [sys.executable, "-P", *sys.argv])  # noqa: S606


def main() -> None:
    _names.update(globals())
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        value = eval(line, _names)  # noqa: S307  what tests say
        print(repr(int(value) if isinstance(value, Result) else value), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
