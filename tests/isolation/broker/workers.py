"""Processes of a container, and what tests order them to do."""

from __future__ import annotations

import ast
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from support.isolated import Contained

DEADLINE_S: Final = 30.0
_PROCESS: Final = Path(__file__).with_name("worker_process.py")


class Worker:
    def __init__(self, container: Contained) -> None:
        node = container.place.node
        path = os.pathsep.join(part for part in sys.path if part)
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_PROCESS), str(container.socket)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**node.environment, "PYTHONPATH": path},
        )
        assert self._line() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, expression: str) -> Any:
        self.begin(expression)
        return self.end()

    def begin(self, expression: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        return ast.literal_eval(self._line())

    @property
    def has_answered(self) -> bool:
        """What it was told last, without waiting."""
        assert self._process.stdout
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def execute(self) -> None:
        """Another program in the same process."""
        self.begin("execute()")
        assert self._line() == "ready"

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            try:
                stream.close()
            except BrokenPipeError:
                continue

    def _line(self) -> str:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE_S)
        assert ready, "the process does not answer"
        return self._process.stdout.readline().strip()


@contextmanager
def workers(container: Contained, count: int) -> Generator[list[Worker]]:
    with ExitStack() as stack:
        made = [stack.enter_context(Worker(container)) for _ in range(count)]
        assert [worker.do("hello()") for worker in made] == [0] * count
        yield made
