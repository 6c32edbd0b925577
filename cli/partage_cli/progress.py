"""A progress line on the terminal for a wait longer than two seconds; it is erased when the wait ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import click

_AFTER_S: Final = 2.0
_EVERY_S: Final = 0.5
_CLEAR: Final = "\r\x1b[K"


class _Line:
    """A progress line drawn by its own thread, so that it also appears during blocking calls."""

    def __init__(self, words: str) -> None:
        self.words = words
        self._since = time.monotonic()
        self._has_ended = threading.Event()
        self._turn = threading.Lock()
        self._is_drawn = False
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._has_ended.set()
        self._thread.join()
        self.clear()

    def clear(self) -> None:
        with self._turn:
            if self._is_drawn:
                _write(_CLEAR)
            self._is_drawn = False

    def _draw(self) -> None:
        wait_s = _AFTER_S
        while not self._has_ended.wait(wait_s):
            with self._turn:
                self._is_drawn = True
                _write(f"{_CLEAR}{self.words} … {time.monotonic() - self._since:.0f} s")
            wait_s = _EVERY_S


_drawn: Final = list[_Line | None]()
"""The process's progress line, or None while lines are suppressed. A nested wait draws no line of its own."""


@contextmanager
def waiting(words: str) -> Generator[None]:
    """Show a progress line during this context; does nothing unless stderr is a terminal."""
    if _drawn or not sys.stderr.isatty():
        yield
        return
    _drawn.append(line := _Line(words))
    try:
        yield
    finally:
        _drawn.clear()
        line.end()


@contextmanager
def silent() -> Generator[None]:
    """Suppress progress lines during this context, because something else is drawn on the terminal."""
    _drawn.append(None)
    try:
        yield
    finally:
        _drawn.pop()


def now(words: str) -> None:
    """Change the text of the current progress line, if there is one."""
    for line in filter(None, _drawn):
        line.words = words


def tell(words: str) -> None:
    """Print a permanent line on stderr, in place of the progress line."""
    for line in filter(None, _drawn):
        line.clear()
    click.echo(words, err=True)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
