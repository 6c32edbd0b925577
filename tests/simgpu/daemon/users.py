"""Processes that use a card on a test's orders, and simgpud's figures about them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Unpack

from partage_simgpu.node import SimulatedNode
from partage_simgpu.status import CardStatus, statuses_of
from rig.client.wait import found
from simgpu.daemon.wire import BLOCK, REPLY, Ask, Fields, Reply, Result, reply_of, request
from support.simgpu import card, simulated_node
from support.steered import Child

_RELAY: Final = Path(__file__).with_name("relay.py")


class User(Child):
    """A separate process that executes orders, and can be killed and stopped."""

    def __init__(self, root: Path, *, through: Sequence[str] = ()) -> None:
        super().__init__([*through, sys.executable, "-S", _RELAY, root])
        self.own_pid = int(self.line())
        """The pid in the process's own pid namespace."""

    def ask(self, ask: Ask, **fields: Unpack[Fields]) -> Reply:
        self.begin(ask, **fields)
        return self.answer()

    def begin(self, ask: Ask, **fields: Unpack[Fields]) -> None:
        """Send a request without waiting for the reply."""
        self.say(request(ask, **fields).hex())

    def answer(self) -> Reply:
        *numbers, token, rest = self.line().split(" ")
        result, row, number, amount, pid, count = map(int, numbers)
        packet = REPLY.pack(result, row, number, amount, pid, count, bytes.fromhex(token)) + bytes.fromhex(rest)
        return reply_of(packet)

    def take(self, amount: int) -> int:
        reply = self.ask(Ask.TAKE, kind=BLOCK, size=amount)
        assert reply.result == Result.OK, reply
        return reply.id

    def do(self, what: str) -> str:
        self.say(what)
        return self.line()

    def send(self, number: int) -> None:
        """Popen would check first that it is a child, and a fork of the test may call this."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        if self.process.returncode is None:
            self.send(signal.SIGKILL)
        super().kill()


def status(node: SimulatedNode, index: int = 0) -> CardStatus:
    return statuses_of(node.control("status"))[index]


def used(node: SimulatedNode, index: int = 0) -> int:
    return status(node, index).used_bytes


def totals(node: SimulatedNode) -> dict[str, int]:
    """Totals of the node: processes, clients, pieces, kept."""
    words = (word.partition("=") for word in node.control("status").splitlines()[0].split())
    return {name: int(value) for name, _, value in words if value.isdigit()}


def until(condition: Callable[[], bool]) -> None:
    """Wait for an asynchronous event."""
    found(condition, condition, every_s=0.002)


@contextmanager
def small_node(folder: Path, count: int = 1, *, context_mib: int = 64) -> Generator[SimulatedNode]:
    """Cards of 1000 MiB, 100 of which are the driver's."""
    small = card("t4", memory_mib=1000, reserved_mib=100, context_mib=context_mib)
    with simulated_node(folder, cards=(small,) * count) as node:
        yield node
