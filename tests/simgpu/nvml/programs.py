"""Programs that use NVML on a simulated node."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from partage_simgpu.node import SimulatedNode
from support.steered import Steered

CHILD = Path(__file__).with_name("child.py")
TESTS = Path(__file__).parents[2]
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE = 1, 2, 3, 6, 7
DRIVER_NOT_LOADED, TIMEOUT, GPU_IS_LOST, VERSION_MISMATCH, UNKNOWN = 9, 10, 15, 25, 999
MIB = 1 << 20


def environment(node: SimulatedNode) -> dict[str, str]:
    """The environment of a child with the node's driver and our own modules."""
    return {**node.environment, "PYTHONPATH": str(TESTS)}


class Program(Steered):
    """A process with pynvml (see child.py) that executes one line after the other."""

    def __init__(self, node: SimulatedNode, *, before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, str(CHILD), str(node.root)]
        super().__init__(command, env=environment(node), refusals="nvml")

    def waits_in_futex(self) -> bool:
        """Whether its main thread sleeps in the kernel's futex call."""
        call = Path(f"/proc/{self.pid}/syscall").read_text().split()[0]
        return call == "202"


@contextmanager
def bare_program(node: SimulatedNode, *, before: tuple[str, ...] = ()) -> Generator[Program]:
    """A program that has not called NVML yet."""
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
    """A program with NVML initialised, and `card` the handle of the node's first card."""
    with bare_program(node, before=before) as started:
        started.ask("nvmlInit()")
        started.ask("(card := nvmlDeviceGetHandleByIndex(0)) and None")
        yield started
