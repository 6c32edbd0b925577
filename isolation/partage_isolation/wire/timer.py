"""A timer on CLOCK_MONOTONIC with microsecond resolution: an event loop's timers count whole milliseconds.

Calls timerfd through the C library: Python has it only since 3.13.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_ABSOLUTE: Final = 1
_SECOND: Final = 1_000_000_000
_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("every", _Moment), ("at", _Moment))


_settime: Final = _libc.timerfd_settime
_settime.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Timer:
    """A timer. It is set several times in each time slice, so the structure that the kernel reads is reused."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring, self._at_ns = ring, None
        self._loop = asyncio.get_running_loop()
        self._timer: int = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        _must(self._timer)
        self._setting = _Setting()
        self._at: _Moment = self._setting.at
        self._address = ctypes.addressof(self._setting)
        self._loop.add_reader(self._timer, self._rings)

    def set(self, at_ns: int | None) -> None:
        """Set the timer, replacing the previous time. A past time fires immediately; None disarms it."""
        if at_ns != self._at_ns:
            self._at_ns = at_ns
            self._at.seconds, self._at.nanoseconds = (0, 0) if at_ns is None else divmod(max(1, at_ns), _SECOND)
            _must(_settime(self._timer, _ABSOLUTE, self._address, None))

    def close(self) -> None:
        self._loop.remove_reader(self._timer)
        os.close(self._timer)

    _at_ns: int | None

    def _rings(self) -> None:
        with suppress(BlockingIOError):  # it was set to a later time after the event was queued
            os.read(self._timer, 8)
            self._at_ns = None
            self._ring()


def _must(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
