"""A lock so that one process at a time sets this machine up, supervises it, or takes it down.

It is a POSIX record lock, which names its holder, so `down` knows which process to signal; a PID file could name a
recycled PID. The holder itself must not query it: the kernel reports only locks of other processes, and closing any
descriptor of the file would release the holder's lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_base.processes import process_descriptor
from partage_cli.machine.places import HOLD
from partage_cli.machine.setup.errors import Held, NotStarted

_FLOCK: Final = struct.Struct("hh4xqqi4x")
"""struct flock on 64-bit machines: type, whence, start, length, PID."""
_WHOLE_FILE: Final = (0, 0, 0)


@contextmanager
def held(root: Path, what: str) -> Generator[None]:
    """Hold the lock inside the context; raises `Held` if another process has it."""
    path = root / HOLD
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor = _opened(path)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EAGAIN}:
                raise
            who = _holder(descriptor)
            raise Held(f"{what}: process {who or '(just ended)'} is at it already; wait for it, or end it") from None
        yield
    finally:
        os.close(descriptor)


def holder(root: Path) -> int | None:
    """PID of the lock's holder."""
    try:
        descriptor = _opened(root / HOLD)
    except FileNotFoundError:
        return None
    try:
        return _holder(descriptor)
    finally:
        os.close(descriptor)


def end_holder(root: Path, *, within_s: float) -> int | None:
    """Terminate the holder and wait for its exit; returns its PID. Raises `NotStarted` if it doesn't exit."""
    pid = holder(root)
    if pid is None:
        return None
    descriptor = process_descriptor(pid)
    if descriptor is None:
        return pid
    try:
        if holder(root) == pid:  # checked again, as the PID may have been recycled before the pidfd was opened
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            if not select.select([descriptor], [], [], within_s)[0]:
                raise NotStarted(f"process {pid}, which supervises this machine, does not end; kill it")
    finally:
        os.close(descriptor)
    return pid


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags | (os.O_CREAT if path.parent.is_dir() else 0), 0o600)


def _holder(descriptor: int) -> int | None:
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, *_WHOLE_FILE)
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else pid
