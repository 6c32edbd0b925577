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

_PRELUDE: Final = "import os\nfrom simgpu.memory.client import *\nfrom simgpu.cuda.driver import *\n"


class Programs:
    """Runs programs on a node."""

    def __init__(self, node: SimulatedNode) -> None:
        self.node = node

    def run(self, snippet: str, **environment: str) -> Any:
        """Run a program to its end; return its last report."""
        done = subprocess.run(
            _command(snippet),
            env={**self.node.environment, **environment},
            capture_output=True,
            text=True,
            timeout=patience_s(),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])[1]

    @contextmanager
    def running(self, snippet: str) -> Generator[Steered]:
        """A program that a test talks to: each `tell` is an answer, and each `say` a line for its `input()`."""
        program = Steered(_command(snippet), env=self.node.environment, refusals="cuda")
        try:
            yield program
        finally:
            program.kill()
            program.close()


def _command(snippet: str) -> list[str]:
    return [sys.executable, "-c", _PRELUDE + dedent(snippet)]
