"""A crishim on a machine, in front of the machine's runtime, and its metrics."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from rig.machine.components import Component, serving
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, inside, why_no_answer
from support import metrics
from support.bytecode import BYTECODE
from support.extent import is_all

SOCKET: Final = "/run/partage/crishim.sock"
ROUNDS: Final = int(os.environ.get("TEST_ROUNDS", "3" if is_all() else "1"))
"""Repetitions of tests that may fail by chance; more in `make test-all`, many in a soak."""
PORT: Final = 9401


def crishim(
    *flags: str,
    node: str = "n1",
    env: Mapping[str, str] | None = None,
    number: int = 0,
    former: int | None = None,
) -> Daemon:
    """The daemon, for a node or to start `inside` a machine; `number` distinguishes several on one machine.

    It is ready when a socket answers other than the `former` one, which is known by its inode.
    """

    def why_not_ready(machine: Machine) -> str | None:
        path = machine.path(SOCKET)
        if former is not None and (not path.exists() or path.stat().st_ino == former):
            return f"{SOCKET} is not there or another's"
        return why_no_answer(machine, SOCKET)

    argv = (sys.executable, "-P", "-m", "partage_crishim", "--node-name", node, "--log-format", "text")
    address = ("--metrics-address", metrics.everywhere(PORT + number))
    return Daemon("crishim", (*argv, *address, *flags), why_not_ready, {**BYTECODE, **(env or {})})


@contextmanager
def in_front(machine: Machine, daemon: Daemon) -> Generator[Component]:
    """Serve inside the context; it ends by a kill, like everything around it."""
    with serving(inside(machine, daemon)) as component:
        yield component
        component.require_running()


def figures(machine: Machine) -> dict[str, float]:
    return metrics.figures(machine, PORT)
