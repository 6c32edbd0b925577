"""Programs that use a card's memory: child processes that execute a test's lines (client.py)."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_simgpu.node import SimulatedNode
from support.steered import Steered

CLIENT: Final = Path(__file__).with_name("client.py")
KIB: Final = 1 << 10
MIB: Final = 1 << 20
BLOCK: Final = 2 * MIB
CHUNK: Final = 32 * MIB

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, UNAVAILABLE, INVALID_DEVICE, INVALID_CONTEXT = 1, 2, 3, 46, 101, 201
INVALID_HANDLE, NOT_FOUND, CAPTURE_UNSUPPORTED, NOT_SUPPORTED = 400, 500, 900, 801
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
GRAPH_USED, GRAPH_USED_HIGH, GRAPH_RESERVED, GRAPH_RESERVED_HIGH = 0, 1, 2, 3


class Program(Steered):
    """A process that uses the driver of a node."""

    def __init__(self, node: SimulatedNode, *, pass_fds: Sequence[int] = ()) -> None:
        super().__init__([sys.executable, CLIENT], env=node.environment, refusals="cuda", pass_fds=pass_fds)


@contextmanager
def program(node: SimulatedNode, *, device: int | None = 0, pass_fds: Sequence[int] = ()) -> Generator[Program]:
    """A program that computes on a device, unless that is None."""
    with Program(node, pass_fds=pass_fds) as started:
        if device is not None:
            started.ask(f"start({device})")
        yield started


@contextmanager
def received(sender: Steered, descriptor: int) -> Generator[int]:
    """A descriptor of another process, duplicated into ours for children to inherit."""
    file = os.open(f"/proc/{sender.pid}/fd/{descriptor}", os.O_RDONLY)
    os.set_inheritable(file, True)
    try:
        yield file
    finally:
        os.close(file)


def used(node: SimulatedNode, card: int = 0) -> int:
    """Used bytes according to simgpud."""
    return node.status()[card].used_bytes


def rounded(size: int, step: int) -> int:
    return -(-size // step) * step
