"""Interrupts a change of keys at each step: each system call that opens, changes or syncs something."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

STEPS: Final = ("open", "write", "fchmod", "fsync", "link", "rename", "unlink", "mkdir")


@contextmanager
def at_step(number: int, strike: Callable[[], None]) -> Generator[list[str]]:
    """Calls `strike` right before step `number`, counted from 1; yields the names of the steps so far."""
    seen: list[str] = []

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            seen.append(name)
            if len(seen) == number:
                strike()
            return real(*arguments, **named)

        return call

    patches = [mock.patch.object(os, name, watched(name, getattr(os, name))) for name in STEPS]
    patches.append(mock.patch.object(fcntl, "flock", watched("flock", fcntl.flock)))
    for patch in patches:
        patch.start()
    try:
        yield seen
    finally:
        for patch in patches:
            patch.stop()


@contextmanager
def without_nameless_files() -> Generator[None]:
    """Simulates a file system without O_TMPFILE."""
    real = os.open

    def call(path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real(path, flags, mode, **named)

    with mock.patch.object(os, "open", call):
        yield
