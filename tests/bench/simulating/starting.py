"""How a program that takes memory comes to run: as an ordinary process here, in a container elsewhere.

Both give the same: a process to speak with, and the pid by which simgpud knows the program.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from support.simgpu import SimulatedNode, built


class Started(NamedTuple):
    """A program, and the process of ours that speaks with it: the same one, or one that passes all on."""

    process: subprocess.Popen[bytes]
    pid: int
    """The program's own, as simgpud and we see it."""


Start = Callable[[Sequence[str]], Started]


def outside(node: SimulatedNode) -> Start:
    def start(arguments: Sequence[str]) -> Started:
        process = subprocess.Popen(
            [built() / "allocate", *arguments],
            bufsize=0,
            env=node.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return Started(process, process.pid)

    return start
