"""Processes of a container, and the orders that tests give them."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from support.isolated import Contained
from support.steered import Child

_PROCESS: Final = Path(__file__).with_name("worker_process.py")


class Worker(Child):
    def __init__(self, container: Contained) -> None:
        path = os.pathsep.join(part for part in sys.path if part)
        env = {**container.place.node.environment, "PYTHONPATH": path}
        super().__init__([sys.executable, "-P", _PROCESS, str(container.socket)], env=env)
        assert self.line() == "ready"

    def do(self, expression: str) -> Any:
        self.say(expression)
        return self.end()

    def end(self) -> Any:
        return ast.literal_eval(self.line())

    def execute(self) -> None:
        """Replace the program in the same process."""
        self.say("execute()")
        assert self.line() == "ready"


@contextmanager
def workers(container: Contained, count: int) -> Generator[list[Worker]]:
    with ExitStack() as stack:
        made = [stack.enter_context(Worker(container)) for _ in range(count)]
        assert [worker.do("hello()") for worker in made] == [0] * count
        yield made
