"""Programs that use NVML on a simulated node, as tests see them."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partage_isolation.simulation.node import SimulatedNode
from support.nvidia import PYNVML, unpacked

CHILD = Path(__file__).with_name("child.py")
TESTS = Path(__file__).parents[2]
DEADLINE_S = 30.0
"""A bound for what happens at once on a machine that is not overloaded."""

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE = 1, 2, 3, 6, 7
DRIVER_NOT_LOADED, TIMEOUT, GPU_IS_LOST, VERSION_MISMATCH, UNKNOWN = 9, 10, 15, 25, 999
MIB = 1 << 20


class NvmlSaid(Exception):
    """An NVML function answered with an error."""

    def __init__(self, number: int) -> None:
        super().__init__(f"NVML answered {number}")
        self.number = number


def environment(node: SimulatedNode) -> dict[str, str]:
    """For a child that has the node's driver, pynvml and our own modules."""
    return {**node.environment, "PYTHONPATH": f"{unpacked(PYNVML)}:{TESTS}"}


class Program:
    """A process with pynvml (see child.py) that does what it is told, one line after the other."""

    def __init__(self, node: SimulatedNode, *, before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, str(CHILD), str(node.root)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment(node), text=True, stdin=pipe, stdout=pipe)

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> None:
        """Sends a line without waiting for what becomes of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def has_answered(self, *, within_s: float = 0) -> bool:
        """Whether there is an answer to read."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            return bool(selector.select(within_s))

    def answer(self) -> Any:
        """The value of the line that was sent last."""
        assert self._process.stdout is not None
        assert self.has_answered(within_s=DEADLINE_S), "the program does not answer"
        line = self._process.stdout.readline()
        assert line, f"the program ended with {self._process.wait(DEADLINE_S)}"
        kind, value = json.loads(line)
        if kind == "nvml":
            raise NvmlSaid(value)
        assert kind == "ok", value
        return value

    def ask(self, line: str) -> Any:
        """The value of an expression."""
        self.say(line)
        return self.answer()

    def error(self, line: str) -> int:
        """The NVML error of an expression; 0 if there is none."""
        try:
            self.ask(line)
        except NvmlSaid as said:
            return said.number
        return 0

    def waits_in_futex(self) -> bool:
        """Whether its main thread sleeps in the kernel's futex call."""
        call = Path(f"/proc/{self.pid}/syscall").read_text().split()[0]
        return call == "202"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Lets it end, or makes it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(DEADLINE_S if self._process.poll() is None else 0)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self._process.stdout.close()


@contextmanager
def bare_program(node: SimulatedNode, *, before: tuple[str, ...] = ()) -> Generator[Program]:
    """One that has not called NVML yet."""
    started = Program(node, before=before)
    try:
        yield started
    except BaseException:
        started.kill()
        raise
    finally:
        started.close()


@contextmanager
def program(node: SimulatedNode, *, before: tuple[str, ...] = ()) -> Generator[Program]:
    """One with NVML initialised, and `card` the handle of the node's first card."""
    with bare_program(node, before=before) as started:
        started.ask("nvmlInit()")
        started.ask("(card := nvmlDeviceGetHandleByIndex(0)) and None")
        yield started


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Waits until it holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"it never came true that {what}"
        os.sched_yield()
