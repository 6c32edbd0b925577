"""What signals do: the first SIGTERM or SIGINT asks for a stop, the second ends the process at once.

Handlers are Python's own and not the loop's, so that they run between any two instructions, even while something blocks
the loop. The second ends the process by itself, with 128 + its number, since the kernel's default does nothing to the
first process of a container. A loop about to sleep is woken through a socket: a signal in the instant between the
interpreter's last look and the sleep would else wait for whatever wakes the loop next. SIGHUP reloads what a service
can reload, and is else a line in the log: settings are read once, and a daemon that kubelet depends on must not end
because a terminal or a log rotation sent one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Generator
from types import FrameType
from typing import Final

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
_MANY: Final = 4096


def install(*, on_stop: Callable[[str], None], on_hangup: Callable[[], None]) -> None:
    """Calls `on_stop` with the first signal's name; for the main thread, once in a process."""
    asked = False

    def end(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        on_stop(signal.Signals(number).name)

    def hang_up(_: int, __: FrameType | None) -> None:
        on_hangup()

    for number in _ENDING:
        signal.signal(number, end)
    signal.signal(signal.SIGHUP, hang_up)


@contextlib.contextmanager
def waking(loop: asyncio.AbstractEventLoop) -> Generator[None, None, None]:
    """Every signal wakes `loop`, so that its handler runs at once; for the main thread."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        loop.add_reader(near, near.recv, _MANY)
        before = signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(near)
