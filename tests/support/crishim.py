"""A crishim in a machine, in front of the runtime that is there, and the figures it gives of itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, inside, why_no_answer
from support import metrics
from support.extent import is_all

SOCKET: Final = "/run/partage/crishim.sock"
ROUNDS: Final = int(os.environ.get("TEST_ROUNDS", "3" if is_all() else "1"))
"""How often tests repeat what can go wrong by chance; `make test-all` does so more often, a soak asks for many."""
PORT: Final = 9401


def crishim(*flags: str, node: str = "n1", env: Mapping[str, str] | None = None) -> Daemon:
    """The daemon, to be given to a node or to be started `inside` a machine."""
    argv = (
        sys.executable,
        "-P",
        "-m",
        "partage_crishim",
        "--node-name",
        node,
        "--metrics-address",
        metrics.everywhere(PORT),
    )
    return Daemon(
        "crishim",
        (*argv, "--log-format", "text", *flags),
        lambda machine: why_no_answer(machine, SOCKET),
        {"PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
    )


@contextmanager
def in_front(machine: Machine, daemon: Daemon) -> Generator[Component]:
    """It serves inside; its end is a kill, as the end of everything around it."""
    component = inside(machine, daemon)
    component.start()
    try:
        component.wait_ready()
        yield component
        component.require_running()
    finally:
        component.kill()


def figures(machine: Machine) -> dict[str, float]:
    return metrics.figures(machine, PORT)
