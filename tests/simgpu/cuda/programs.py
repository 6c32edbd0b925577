"""Programs on a simulated card: snippets of Python that run in child processes, behind everything in driver.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import IO, Any, Final

from partage_simgpu.node import SimulatedNode

PRELUDE: Final = "import os\nimport sys\nsys.path.insert(0, {folder!r})\nfrom driver import *\n"
DEADLINE_S: Final = 120.0
"""A bound for what a machine that is not overloaded does at once."""


def source_of(snippet: str) -> str:
    """The whole program."""
    return PRELUDE.format(folder=str(Path(__file__).parent)) + dedent(snippet)


def run(node: SimulatedNode, snippet: str, **environment: str) -> Any:
    """Runs a program to its end; what it told last."""
    done = subprocess.run(
        [sys.executable, "-c", source_of(snippet)],
        env={**node.environment, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class Running:
    """A program that a test talks with: it reads lines with `input()` and answers with `tell`."""

    def __init__(self, node: SimulatedNode, snippet: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", source_of(snippet)],
            env=dict(node.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """The child's."""
        return self.process.pid

    def hear(self) -> Any:
        """What it tells next."""
        return json.loads(_pipe(self.process.stdout).readline())

    def say(self, line: str = "go") -> None:
        """A line for its `input()`."""
        pipe = _pipe(self.process.stdin)
        pipe.write(line + "\n")
        pipe.flush()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@contextmanager
def running(node: SimulatedNode, snippet: str) -> Generator[Running]:
    """A program that is gone afterwards, whatever became of it."""
    program = Running(node, snippet)
    try:
        yield program
    finally:
        program.process.kill()
        program.process.wait()
        _pipe(program.process.stdin).close()
        _pipe(program.process.stdout).close()
