"""Tells people how far the work is: lines that stay, and a status that the next one replaces.

On a terminal the status is redrawn in place twice a second. Elsewhere, in a log of CI, it is a plain line every 30 s:
the reader knows that work goes on, and the log stays readable.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Final, Protocol, TextIO

_CLEAR_LINE: Final = "\r\033[K"


class Teller(Protocol):
    def line(self, text: str) -> None:
        """Something happened."""

    def status(self, text: str) -> None:
        """How things are; may be called at any rate."""


class Lines:
    """Every text is a line; a status is one only when nothing was said for long."""

    def __init__(self, say: Callable[[str], None], every_s: float = 30.0) -> None:
        self._say = say
        self._every_s = every_s
        self._last = time.monotonic()

    def line(self, text: str) -> None:
        self._say(text)
        self._last = time.monotonic()

    def status(self, text: str) -> None:
        if time.monotonic() - self._last >= self._every_s:
            self.line(text)


class Terminal:
    def __init__(self, stream: TextIO, every_s: float = 0.5) -> None:
        self._stream = stream
        self._every_s = every_s
        self._last = 0.0

    def line(self, text: str) -> None:
        self._write(f"{_CLEAR_LINE}{text}\n")
        self._last = 0.0

    def status(self, text: str) -> None:
        """Redraws, cut to the width: a line that wraps cannot be cleared."""
        if time.monotonic() - self._last >= self._every_s:
            self._write(_CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])
            self._last = time.monotonic()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def to_stderr(text: str) -> None:
    """Where lines go unless someone else wants them."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def teller_for(stream: TextIO) -> Teller:
    return Terminal(stream) if stream.isatty() else Lines(to_stderr)


def spent(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
