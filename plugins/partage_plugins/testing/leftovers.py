"""Finds processes and threads that a plugin leaves behind in the process that checks it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from partage_plugins.testing.check import Broken

_GRACE_S = 1.0
_LOOK_S = 0.01


def no_process_is_left() -> None:
    """Raises `Broken` if a process that a plugin started still runs."""
    if not _awaited_end(lambda: not list(_children())):
        named = ", ".join(f"{number} ({name})" for number, name in _children())
        raise Broken(f"it left a process running: {named}")


def end_children() -> None:
    """Kills the processes that a plugin started, also those in sessions of their own."""
    for number, _ in _children():
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)


def no_thread_is_left(before: Collection[threading.Thread]) -> None:
    """Raises `Broken` if a thread runs that did not exist before."""
    if not _awaited_end(lambda: not _new(before)):
        raise Broken(f"it left a thread running: {', '.join(thread.name for thread in _new(before))}")


def _new(before: Collection[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread not in before]


def _awaited_end(ended: Callable[[], bool]) -> bool:
    until = time.monotonic() + _GRACE_S
    while not ended():
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True


def _children() -> Iterator[tuple[int, str]]:
    """Pid and name of each living child of this process; dead ones are reaped."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, fields = stat.read_text(errors="replace").partition("(")[2].rpartition(") ")
            state, parent = fields.split()[:2]
            if int(parent) == os.getpid():
                number = int(stat.parent.name)
                if state == "Z":
                    os.waitpid(number, os.WNOHANG)
                else:
                    yield number, name
