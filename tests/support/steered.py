"""Child processes driven by tests: each line of Python is answered with a line of JSON.

An answer is a pair: `ok` and the value, the name of the refusing component and its error number, or anything else and a
reason. The child's script belongs to the tests that use it.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from rig.client import wait
from rig.patience import patience_s

T = TypeVar("T")
_PIECE_BYTES: Final = 1 << 16


class Said(Exception):
    def __init__(self, who: str, number: int) -> None:
        super().__init__(f"{who} answered {number}")
        self.number = number


def eventually(found: Callable[[], T | None], what: str) -> T:
    """Poll until the answer is not None."""
    return wait.found(what, found, every_s=0.001)


class Child:
    """A process that reads and writes lines, and is killed at the end of the test."""

    def __init__(
        self, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, pass_fds: Sequence[int] = ()
    ) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=env, text=True, bufsize=1, pass_fds=pass_fds, stdin=pipe, stdout=pipe
        )
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self.process.pid

    def say(self, line: str) -> None:
        """Send a line without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def has_answered(self, *, within_s: float = 0) -> bool:
        """Whether a line or the end of output is available; several lines may arrive together."""
        assert self.process.stdout is not None
        if b"\n" in self._heard:
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(within_s):
                return False
        piece = os.read(self.process.stdout.fileno(), _PIECE_BYTES)
        self._heard += piece
        return not piece or b"\n" in piece

    def line(self) -> str:
        """The next line of its output."""
        wait.found("the program answers", lambda: self.has_answered(within_s=0.1), every_s=0)
        line, ended, self._heard = self._heard.partition(b"\n")
        assert line or ended, f"the program ended with {self.process.wait(patience_s())}"
        return line.decode()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # the last line sent did not reach it
                stream.close()


class Steered(Child):
    def __init__(
        self, command: Sequence[str | Path], *, env: Mapping[str, str], refusals: str, pass_fds: Sequence[int] = ()
    ) -> None:
        """`refusals` is the name under which it reports numeric errors."""
        self._refusals = refusals
        super().__init__(command, env=env, pass_fds=pass_fds)

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self) -> Any:
        """The answer to the last line sent."""
        kind, value = json.loads(self.line())
        if kind == self._refusals:
            raise Said(kind, value)
        assert kind == "ok", value
        return value

    def ask(self, line: str) -> Any:
        """The value of an expression, or None for a statement."""
        self.say(line)
        return self.answer()

    def error(self, line: str) -> int:
        """The error number of an expression; 0 if there is none."""
        try:
            self.ask(line)
        except Said as said:
            return said.number
        return 0

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
            return self.process.wait(patience_s())
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            self.process.stdout.close()
