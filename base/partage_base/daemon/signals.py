"""Signal handling: the first SIGTERM or SIGINT requests a stop, the second ends the process at once.

The handlers are Python's own and not the loop's, so that they run between any two instructions, even while the loop is
blocked. The second signal ends the process explicitly, with 128 + its number, since the kernel's default action does
nothing to PID 1 of a container. A loop about to sleep is woken through a socket: otherwise a signal between the
interpreter's last check and the sleep would wait until something else wakes the loop. SIGHUP reloads what a service can
reload, and else is only logged: settings are read once, and a daemon that kubelet depends on must not end because a
terminal or a log rotation sent one.
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
    """Calls `on_stop` with the first signal's name; call it in the main thread, once in a process."""
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
    """Every signal wakes `loop` in the block, so that its handler runs at once; for the main thread."""
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
