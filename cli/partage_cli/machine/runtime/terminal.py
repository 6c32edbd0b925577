"""A person's terminal while a container has it: raw, its size, and the keys that let go of it.

What is typed goes to the container byte by byte, also what would be a signal here. The terminal is as it was before on
every way out, also by a signal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

from partage_base.files import write_all
from partage_cli.machine.runtime.kernel_events import readable

_CTRL_P: Final = b"\x10"
_CTRL_Q: Final = b"\x11"
_BLOCK: Final = 16 << 10
_ENDS: Final = (signal.SIGHUP, signal.SIGTERM)


class Size(NamedTuple):
    """Columns and rows, in characters."""

    columns: int
    rows: int


class DetachKeys:
    """Ctrl-P Ctrl-Q, as docker has it; a Ctrl-P that is followed by anything else is passed on with it. Pure."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """What the container gets of it, and whether the keys were pressed, which end the rest."""
        data = self._held + data
        self._held = b""
        before, keys, _ = data.partition(_CTRL_P + _CTRL_Q)
        if keys:
            return before, True
        if data.endswith(_CTRL_P):
            self._held = _CTRL_P
            return data[:-1], False
        return data, False


class Terminal:
    """The terminal behind a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.resized = asyncio.Event()
        """Set when its size has changed."""

    @property
    def size(self) -> Size:
        return Size(*os.get_terminal_size(self.descriptor))

    @contextmanager
    def raw(self) -> Generator[None]:
        """Raw until the end of the block; a signal that would end the program cancels the task that is in it."""
        before = termios.tcgetattr(self.descriptor)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a terminal is raw for one task")
        loop.add_signal_handler(signal.SIGWINCH, self.resized.set)
        for number in _ENDS:
            loop.add_signal_handler(number, task.cancel)
        try:
            tty.setraw(self.descriptor, termios.TCSANOW)
            yield
        finally:
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, before)
            for number in (signal.SIGWINCH, *_ENDS):
                loop.remove_signal_handler(number)


async def typed(descriptor: int) -> AsyncGenerator[bytes]:
    """What comes from a terminal, a pipe or a file, until its end; read only when it is asked for."""
    while True:
        await readable(descriptor)
        try:
            data = os.read(descriptor, _BLOCK)
        except OSError:
            return  # a terminal that was hung up
        if not data:
            return
        yield data


async def written(descriptor: int, data: bytes) -> None:
    """Writes all of it, however slow the reader is; raises `OSError`."""
    await asyncio.to_thread(write_all, descriptor, data)
