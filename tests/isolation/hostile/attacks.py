"""What a hostile program in a container can say to the broker: `attacks.py NAME SOCKET [WORD...]`.

Each attack goes on until its stdin ends, then tells in a line of JSON what it got. It speaks the protocol by hand, as
someone could who has read the library's source.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from partage_isolation.ledger.account import Amounts
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Packet, What
from partage_simgpu.client import Cuda

_ANSWER_S: Final = 5.0
_MOST: Final = (1 << 64) - 1
_LEAST: Final = 1000
_SEED: Final = 8
Told = dict[str, Any]


class Client:
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(_ANSWER_S)
        self.socket.connect(path)

    def ask(self, what: int, body: bytes = b"", *, card: int = wire.NO_CARD, flags: int = 0) -> Packet:
        """One question and its answer."""
        self.socket.send(wire.question(what, card=card, flags=flags, body=body))
        while True:
            packet = wire.read(self.socket.recv(4096))
            if packet is None:
                raise ConnectionError("the broker closed the connection")
            if packet.what == what | wire.ANSWER:
                return packet

    def hello(self, token: bytes = wire.NO_TOKEN, flags: int = 0) -> Packet:
        return self.ask(What.HELLO, wire.hello_body(token), flags=flags)

    def lend(self, lent: int, used: int = 0, card: int = 0) -> Packet:
        return self.ask(What.LEND, wire.amounts_body(Amounts(used, lent)), card=card)

    def view(self, card: int = 0) -> wire.View:
        """How full its container is."""
        return wire.read_view(self.ask(What.VIEW, card=card))


@contextmanager
def client(path: str) -> Generator[Client]:
    """One connection, closed at the end."""
    one = Client(path)
    try:
        yield one
    finally:
        one.socket.close()


def _say(told: Told) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def goes_on(sent: int) -> bool:
    """Until stdin ends, and for a while in any case."""
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    return sent < _LEAST or not ready


def rest() -> None:
    """Waits for the end of stdin."""
    sys.stdin.read()


# ---- attacks


def forge(path: str) -> Told:
    """Packets of every kind with numbers of every size, in any order, with and without HELLO."""
    chance, sent, closed = random.Random(_SEED), 0, 0  # noqa: S311 (choices that can be repeated)
    numbers = (0, 1, 2, 63, 1 << 21, 1 << 32, 1 << 62, 1 << 63, _MOST - 1, _MOST)
    while goes_on(sent):
        with suppress(OSError), client(path) as one:
            one.socket.setblocking(False)
            closed += 1
            if chance.random() < 0.5:
                one.socket.send(wire.question(What.HELLO))
            for _ in range(200):
                what = chance.choice([*What, 0, 99, 0x8001, 0xFFFF])
                words = b"".join(chance.choice(numbers).to_bytes(8, "little") for _ in range(6))
                packet = wire.question(
                    what, card=chance.choice((0, 0, 1, 7, 0xFFFF)), flags=chance.randrange(8), body=words
                )
                one.socket.send(packet if chance.random() < 0.9 else os.urandom(wire.BYTES))
                sent += 1
                with suppress(BlockingIOError):
                    one.socket.recv(4096)
    return {"sent": sent, "connections": closed}


def flood(path: str) -> Told:
    """Questions as fast as they can be sent, of which no answer is read."""
    sent = 0
    while goes_on(sent):
        with suppress(OSError), client(path) as one:
            one.hello()
            one.socket.setblocking(False)
            while goes_on(sent):
                with suppress(BlockingIOError):
                    one.socket.send(wire.question(What.VIEW, card=0))
                    sent += 1
    return {"sent": sent}


def take_past(path: str, mib: str) -> Told:
    """Takes memory past the library and the broker, of whom it only wants to be known."""
    with client(path) as one, Cuda() as cuda:
        one.hello()
        cuda.allocate(int(mib) << 20)
        _say({})
        rest()
    return {}


ATTACKS: Final[dict[str, Callable[..., Told]]] = {attack.__name__: attack for attack in (forge, flood, take_past)}


def main() -> None:
    name, path, *words = sys.argv[1:]
    sys.stdout.write(json.dumps(ATTACKS[name](path, *words)) + "\n")


if __name__ == "__main__":
    main()
