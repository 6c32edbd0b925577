"""One row's processes: run within a time limit, and none of them left afterwards.

A row starts its own brokers and programs, any of which may hang or die; orphans become our children, since this process
is the subreaper of all its descendants.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from support import leftovers

_CHILD_SUBREAPER: Final = 36
_MOST_BYTES: Final = 4 << 20
_CHUNK: Final = 1 << 16
_ENDS_S: Final = 10.0


@dataclass(frozen=True)
class Done:
    status: int | None
    """None: it was killed at its time limit."""
    seconds: float
    said: str
    complained: str


def reap_all_below() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextmanager
def leaving_nothing() -> Generator[None]:
    """End the processes started within, at its end, or by another process if this one is killed."""
    outer, mark = os.environ.get(leftovers.MARK), secrets.token_hex(8)
    watcher = leftovers.watch(os.getpid(), mark)
    os.environ[leftovers.MARK] = mark
    try:
        yield
    finally:
        del os.environ[leftovers.MARK]
        if outer is not None:
            os.environ[leftovers.MARK] = outer
        leftovers.kill_all_marked(mark)
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)


def run(argv: Sequence[str], environment: Mapping[str, str], *, limit_s: float, folder: Path) -> Done:
    begun, spared = time.monotonic(), set(_children())
    process = subprocess.Popen(
        argv,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stderr
    readers = [_Tail(process.stdout), _Tail(process.stderr)]
    status: int | None = None
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
        end_others(spared)
    said, complained = (reader.text() for reader in readers)
    return Done(status, time.monotonic() - begun, said, complained)


class _Tail:
    """The end of a program's output, of any length."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._end = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), _CHUNK):
            self._end += chunk
            del self._end[:-_MOST_BYTES]

    def text(self) -> str:
        self._thread.join(_ENDS_S)
        if not self._thread.is_alive():
            self._stream.close()
        return self._end.decode(errors="replace")


def end_others(spared: Collection[int]) -> None:
    """Kill all descendants except these, in any session; orphans become our children meanwhile."""
    until = time.monotonic() + _ENDS_S
    while (left := [pid for pid in _children() if pid not in spared]) and time.monotonic() < until:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    own, found = os.getpid(), []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            pid, _, rest = stat.read_text().partition(" ")
            if int(rest[rest.rindex(")") + 2 :].split()[1]) == own:
                found.append(int(pid))
    return found
