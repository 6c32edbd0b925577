"""Programs on a simulated card: snippets of Python that run in child processes, after driver.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from textwrap import dedent
from typing import Any, Final

from partage_simgpu.node import SimulatedNode
from rig.patience import patience_s
from support.steered import Steered

PRELUDE: Final = "import os\nfrom simgpu.memory.client import *\nfrom simgpu.cuda.driver import *\n"


def command(snippet: str) -> list[str]:
    return [sys.executable, "-c", PRELUDE + dedent(snippet)]


def run(node: SimulatedNode, snippet: str, **environment: str) -> Any:
    """Run a program to its end; return its last report."""
    done = subprocess.run(
        command(snippet),
        env={**node.environment, **environment},
        capture_output=True,
        text=True,
        timeout=patience_s(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])[1]


@contextmanager
def running(node: SimulatedNode, snippet: str) -> Generator[Steered]:
    """A program that a test talks to: each `tell` is an answer, and each `say` a line for its `input()`."""
    program = Steered(command(snippet), env=node.environment, refusals="cuda")
    try:
        yield program
    finally:
        program.kill()
        program.close()
