"""Redraws a terminal screen until the user quits."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

_BEGIN: Final = "\x1b[?1049h\x1b[?25l"
_END: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_ENOUGH: Final = (b"q", b"Q", b"\x04", b"")
_TERMINATED: Final = 128 + signal.SIGTERM


def show(draw: Callable[[], Sequence[str]], every_s: float) -> None:
    """Draw until `q` or Ctrl-C; restores the terminal."""
    with _screen(), _keys() as keys:
        while True:
            lines = f"{_CLEAR_LINE}\n".join(draw())
            sys.stdout.write(f"{_HOME}{lines}{_CLEAR_LINE}{_CLEAR_BELOW}")
            sys.stdout.flush()
            if _has_enough(keys, every_s):
                return


@contextmanager
def _screen() -> Generator[None]:
    """Switch to the alternate screen, so that the previous contents come back."""
    before = signal.signal(signal.SIGTERM, _terminated)
    sys.stdout.write(_BEGIN)
    try:
        yield
    finally:
        sys.stdout.write(_END)
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _keys() -> Generator[int | None]:
    """Read single key presses; yields None without a keyboard."""
    if not sys.stdin.isatty():
        yield None
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _has_enough(keyboard: int | None, wait_s: float) -> bool:
    ready, _, _ = select.select([] if keyboard is None else [keyboard], [], [], wait_s)
    return bool(ready) and os.read(ready[0], 1) in _ENOUGH


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)
