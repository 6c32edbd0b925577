"""Programs that use a card's memory, as tests see them: child processes that do what they are told (client.py)."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from partage_isolation.simulation.node import SimulatedNode

CLIENT: Final = Path(__file__).with_name("client.py")
DEADLINE_S: Final = 60.0
"""A bound for what happens at once on a machine that is not overloaded."""

KIB: Final = 1 << 10
MIB: Final = 1 << 20
BLOCK: Final = 2 * MIB
CHUNK: Final = 32 * MIB

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, UNAVAILABLE, INVALID_DEVICE, INVALID_CONTEXT = 1, 2, 3, 46, 101, 201
INVALID_HANDLE, NOT_FOUND, CAPTURE_UNSUPPORTED, NOT_SUPPORTED = 400, 500, 900, 801
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
GRAPH_USED, GRAPH_USED_HIGH, GRAPH_RESERVED, GRAPH_RESERVED_HIGH = 0, 1, 2, 3


class DriverSaid(Exception):
    """The driver answered with an error."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the driver answered {number}")
        self.number = number


class Program:
    """A process that uses the driver of a node."""

    def __init__(self, node: SimulatedNode, *, pass_fds: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(CLIENT)],
            env=node.environment,
            text=True,
            bufsize=1,
            pass_fds=pass_fds,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> None:
        """Sends a line without waiting for what becomes of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The value of the line that was sent last."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(DEADLINE_S), "the program does not answer"
        line = self._process.stdout.readline()
        assert line, f"the program ended with {self._process.wait(DEADLINE_S)}"
        kind, value = json.loads(line)
        if kind == "cuda":
            raise DriverSaid(value)
        assert kind == "ok", value
        return value

    def ask(self, line: str) -> Any:
        """The value of an expression, or None of a statement."""
        self.say(line)
        return self.answer()

    def error(self, line: str) -> int:
        """The driver's error of an expression; 0 if there is none."""
        try:
            self.ask(line)
        except DriverSaid as said:
            return said.number
        return 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def send(self, number: int) -> None:
        """A signal."""
        self._process.send_signal(number)

    def close(self) -> int:
        """Lets it end, or makes it; its status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            return self._process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self._process.stdout.close()


@contextmanager
def program(node: SimulatedNode, *, device: int | None = 0, pass_fds: Sequence[int] = ()) -> Generator[Program]:
    """One that computes on a device, unless that is None."""
    started = Program(node, pass_fds=pass_fds)
    try:
        if device is not None:
            started.ask(f"start({device})")
        yield started
    finally:
        started.close()


def used(node: SimulatedNode, card: int = 0) -> int:
    """Bytes that simgpud says are taken."""
    return node.status()[card].used_bytes


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"it never came to pass that {what}"
        time.sleep(0.002)


def rounded(size: int, step: int) -> int:
    return -(-size // step) * step
