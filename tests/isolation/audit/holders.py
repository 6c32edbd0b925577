"""Processes that hold memory of a simulated card, as `holders.py COUNT MIB [FILE]` and as a fixture.

Each of COUNT processes holds that many MiB of card 0 until its standard input ends, with FILE mapped like a library.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from partage_simgpu.client import Cuda
from partage_simgpu.node import SimulatedNode

MIB = 1 << 20


@contextmanager
def holders(
    node: SimulatedNode, *, count: int = 1, mib: int = 64, before: Sequence[str] = (), library: Path | None = None
) -> Generator[list[int]]:
    """Pids of the processes, in their own namespace."""
    command = [*before, sys.executable, __file__, str(count), str(mib), *([str(library)] if library else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=node.environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield [int(process.stdout.readline()) for _ in range(count)]
        finally:
            process.communicate()


def hold(mib: int, library: Path | None) -> None:
    """Hold memory until the end of standard input."""
    with ExitStack() as stack:
        if library is not None:
            file = stack.enter_context(library.open("rb"))
            kind, protection = mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC
            stack.enter_context(mmap.mmap(file.fileno(), 0, kind, protection))
        card = stack.enter_context(Cuda(0))
        card.allocate(mib * MIB)
        os.write(1, f"{os.getpid()}\n".encode())
        os.read(0, 1)


def main() -> None:
    """Fork before any process loads a driver."""
    count, mib, *files = sys.argv[1:]
    library = Path(files[0]) if files else None
    for _ in range(int(count) - 1):
        if os.fork() == 0:
            hold(int(mib), library)
            os._exit(0)
    hold(int(mib), library)
    for _ in range(int(count) - 1):
        os.wait()


if __name__ == "__main__":
    main()
