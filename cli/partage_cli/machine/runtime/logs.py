"""The logs of one container: all its attempts, in order, from the end backwards as far as asked, and as they grow.

An attempt writes to `N.log`. One that has grown too large is renamed to `N.log.1`, in place of the one before, and the
runtime is told to open `N.log` again: so a container's log is at most twice that size for each attempt that is kept.
A reader holds one line, and the file that it reads stays open while it is renamed or removed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, Protocol

from partage_cli.machine.runtime.kernel_events import FolderWatch
from partage_cli.machine.runtime.log_lines import LineBuffer
from partage_cli.machine.wire.messages import LogLine

MOST_LOG_BYTES: Final = 16 << 20
KEPT_ATTEMPTS: Final = 3
_BLOCK: Final = 64 << 10
_NAME: Final = re.compile(r"(?P<attempt>[0-9]{1,10})\.log(?P<old>\.1)?", re.ASCII)


class Reopener(Protocol):
    async def reopen_log(self, container_id: str) -> None: ...


async def rotate(runtime: Reopener, container_id: str, log: Path, *, most_bytes: int = MOST_LOG_BYTES) -> bool:
    """Begins a new file where this one is too large; whether it did.

    Where its caller dies in between, the log has no file under its name, and the next call has it opened.
    """
    if not _set_aside(log, most_bytes):
        return False
    await runtime.reopen_log(container_id)
    return True


def _set_aside(log: Path, most_bytes: int) -> bool:
    old = log.with_name(f"{log.name}.1")
    try:
        if log.stat().st_size <= most_bytes:
            return False
        log.replace(old)
    except FileNotFoundError:
        return old.exists()
    return True


def forget_attempts(folder: Path, *, kept: int = KEPT_ATTEMPTS) -> None:
    """Removes the files of all attempts but the last."""
    attempts = sorted({attempt for attempt, _, _ in _files(folder)})
    for attempt, _, path in _files(folder):
        if attempt not in attempts[-kept:]:
            path.unlink(missing_ok=True)


async def followed(
    folder: Path, *, tail: int | None = None, until: asyncio.Event | None = None
) -> AsyncIterator[LogLine]:
    """What stands in the folder, and what is written until the event is set; without an event, what stands there.

    `tail` counts lines as the runtime wrote them. Raises `OSError`.
    """
    with FolderWatch(folder) as watch:
        reader = _Reader(folder, tail)
        waking = None if until is None else asyncio.create_task(_wake(watch, until))
        try:
            while True:
                is_last = until is None or until.is_set()
                for line in reader.lines():
                    yield line
                if is_last:
                    for line in reader.rest():
                        yield line
                    return
                await watch.change()
        finally:
            reader.close()
            if waking is not None:
                waking.cancel()


async def _wake(watch: FolderWatch, until: asyncio.Event) -> None:
    await until.wait()
    watch.wake()


class _Reader:
    """Goes through the files of a folder, oldest first, and then through those that come."""

    def __init__(self, folder: Path, tail: int | None) -> None:
        self._folder = folder
        self._buffer = LineBuffer()
        self._open: tuple[int, int] | None = None
        """The attempt that is read, and its descriptor."""
        self._offset = 0
        files = list(_files(folder))
        if files:
            at, self._offset = (0, 0) if tail is None else _tail(files, tail)
            self._begin(files[at][0], files[at][2])

    def lines(self) -> Iterator[LogLine]:
        """All that are there and whole, with those of files that have come since."""
        yield from self._lines_of_open()
        while (following := self._following()) is not None:
            # What was written to this file before the next one came: it gets no more.
            yield from self._lines_of_open()
            yield from self._buffer.end()
            self.close()
            self._offset = 0
            self._begin(*following)
            yield from self._lines_of_open()

    def rest(self) -> Iterator[LogLine]:
        """A line without an end, of a file that gets no more."""
        return self._buffer.end()

    def close(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def _begin(self, attempt: int, path: Path) -> None:
        try:
            self._open = attempt, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._open = None

    def _lines_of_open(self) -> Iterator[LogLine]:
        while self._open is not None and (data := os.pread(self._open[1], _BLOCK, self._offset)):
            self._offset += len(data)
            yield from self._buffer.feed(data)

    def _following(self) -> tuple[int, Path] | None:
        files = list(_files(self._folder))
        if self._open is None:
            return next(((attempt, path) for attempt, _, path in files), None)
        attempt, descriptor = self._open
        mine = os.fstat(descriptor)
        at = next((at for at, (_, _, path) in enumerate(files) if _is(path, mine)), None)
        after = files[at + 1 :] if at is not None else [each for each in files if each[0] >= attempt]
        return next(((attempt, path) for attempt, _, path in after), None)


def _files(folder: Path) -> list[tuple[int, bool, Path]]:
    """Attempt, whether it is the newer of its two, path; oldest first."""
    found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match["attempt"]), match["old"] is None, path) for match, path in found if match)


def _is(path: Path, other: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), other)
    except FileNotFoundError:
        return False


def _tail(files: list[tuple[int, bool, Path]], lines: int) -> tuple[int, int]:
    """Which file the last so many lines begin in, and where."""
    if lines == 0:
        return len(files) - 1, files[-1][2].stat().st_size
    for at in range(len(files) - 1, -1, -1):
        offset, lines = _tail_of(files[at][2], lines)
        if lines == 0:
            return at, offset
    return 0, 0


def _tail_of(path: Path, lines: int) -> tuple[int, int]:
    """Where the last so many lines begin in the file, and how many are to come from the files before."""
    with path.open("rb", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        at, is_end = end, True
        while at > 0:
            start = max(0, at - _BLOCK)
            block = os.pread(file.fileno(), at - start, start)
            if is_end and block.endswith(b"\n"):
                block = block[:-1]
            is_end = False
            position = len(block)
            while (position := block.rfind(b"\n", 0, position)) >= 0:
                lines -= 1
                if lines <= 0:
                    return start + position + 1, 0
            at = start
    # The first line of the file has no newline before it.
    return 0, max(0, lines - 1) if end else lines
