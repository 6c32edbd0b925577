"""Signals to this program that are meant for the container."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType, TracebackType
from typing import Final, Self

_PASSED_ON: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Signals:
    """Kept for who waits on its descriptor; they end this program for as long as there is no container yet."""

    def __init__(self) -> None:
        self.kept = False
        self._numbers: list[int] = []

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = {number: signal.signal(number, self._on) for number in _PASSED_ON}
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        return self._reader

    def taken(self) -> list[int]:
        """Those since the last time."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)
        numbers, self._numbers = self._numbers, []
        return numbers

    def _on(self, number: int, _frame: FrameType | None) -> None:
        if not self.kept:
            raise KeyboardInterrupt
        self._numbers.append(number)
        with contextlib.suppress(BlockingIOError):  # it is full, so it wakes who waits
            os.write(self._writer, b"\0")
