"""What is waited for is told by the kernel: a descriptor has something to read, something changes in a folder."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_MODIFY: Final = 0x2
_MOVED: Final = 0x40 | 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_DELETE_SELF: Final = 0x400
_MOST_EVENTS: Final = 64 << 10


async def readable(descriptor: int) -> None:
    """Returns when there is something to read, or the end of it; at once for files, which always have."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    try:
        loop.add_reader(descriptor, event.set)
    except PermissionError:
        return
    try:
        await event.wait()
    finally:
        loop.remove_reader(descriptor)


class FolderWatch:
    """By inotify, which the standard library has not.

    Changes since it was entered are not missed; many that come together are one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = asyncio.Event()
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Raises `OSError` where the kernel refuses."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), self._folder)
        try:
            what = _MODIFY | _MOVED | _CREATE | _DELETE | _DELETE_SELF
            _checked(libc.inotify_add_watch(self._descriptor, os.fsencode(self._folder), what), self._folder)
            asyncio.get_running_loop().add_reader(self._descriptor, self._on_change)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    async def change(self) -> None:
        """Returns when something has changed since it last returned."""
        await self._changed.wait()
        self._changed.clear()

    def wake(self) -> None:
        """As if something had changed."""
        self._changed.set()

    def _on_change(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, _MOST_EVENTS)
        self._changed.set()


def _checked(answer: int, folder: Path) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
    return answer
