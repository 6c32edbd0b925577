"""Who sets this machine up, supervises it, or takes it down: one process at a time, by a lock that the kernel keeps.

The lock is of the kind that names its holder, so a `down` knows whom to ask for the end: never a number in a file,
which may be another's by now. The holder itself must not ask: the kernel names to each process the locks of others
alone, and to close any descriptor of the file would let go of its lock.
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
"""The kernel's struct of 64-bit machines: kind, whence, start, length, process."""
_WHOLE_FILE: Final = (0, 0, 0)


@contextmanager
def held(root: Path, what: str) -> Generator[None]:
    """Holds the machine meanwhile; raises `Held` where another process does."""
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
    """The process that holds it."""
    try:
        descriptor = _opened(root / HOLD)
    except FileNotFoundError:
        return None
    try:
        return _holder(descriptor)
    finally:
        os.close(descriptor)


def end_holder(root: Path, *, within_s: float) -> int | None:
    """Asks the holder to end and waits for that; the process that it was. Raises `NotStarted` where it goes on."""
    pid = holder(root)
    if pid is None:
        return None
    descriptor = process_descriptor(pid)
    if descriptor is None:
        return pid
    try:
        if holder(root) == pid:  # the number may have been another's before it was opened
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
