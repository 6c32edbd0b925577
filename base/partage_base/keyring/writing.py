"""Writes files of keys: whole or not at all, on the disk when it returns, and never over another one.

A file is written without a name and linked into its folder when it is complete; being killed at any moment leaves
nothing. Where the file system can't do that, it has a name with a dot that nobody reads, and what a killed writer left
there the next one clears away. The mode is right from the first moment. Writers exclude each other by a lock on the
folder, which ends with the process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from partage_base.files import UNFINISHED, write_all, write_whole
from partage_base.keyring.errors import KeyKept

_NO_NAMELESS_FILES: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})
_DESCRIPTORS: Final = "/proc/self/fd"


def make_folder(folder: Path, mode: int) -> None:
    """Makes a folder, and those above it for all to read, unless it is there."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(mode=mode if each == folder else 0o755)
        with _descriptor(each.parent) as parent:
            os.fsync(parent)


@contextmanager
def locked(folder: Path, *others: Path) -> Generator[None]:
    """Keeps every other writer of these folders out, and clears away what a killed one left. The first is the lock."""
    with _descriptor(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for each in (folder, *others):
            for left in each.glob(f"{UNFINISHED}*"):
                left.unlink(missing_ok=True)
        yield


def create(file: Path, content: bytes, mode: int) -> None:
    """Makes a file that is not there yet; raises `KeyKept` where it is."""
    with _telling(file), _descriptor(file.parent) as folder:
        try:
            if not _created_nameless(folder, file.name, content, mode):
                _created_named(folder, file.name, content, mode)
        except FileExistsError:
            raise KeyKept(f"{file} exists and is not overwritten; remove it first if it is not needed") from None
        try:
            os.fsync(folder)
        except OSError:
            os.unlink(file.name, dir_fd=folder)
            raise


def replace(file: Path, content: bytes, mode: int) -> None:
    """Makes a file or puts a new one in its place: readers see the old content or the new."""
    write_whole(file, content, mode=mode, synced=True)


def remove(file: Path) -> None:
    """Takes a file away for good, if it is there."""
    with _telling(file), _descriptor(file.parent) as folder:
        with suppress(FileNotFoundError):
            os.unlink(file.name, dir_fd=folder)
        os.fsync(folder)


@contextmanager
def _telling(file: Path) -> Generator[None]:
    """Errors of the system name the file, though calls are made with descriptors."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


def _created_nameless(folder: int, name: str, content: bytes, mode: int) -> bool:
    """False where the file system or a missing /proc don't allow it."""
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_NAMELESS_FILES:
            return False
        raise
    try:
        _fill(descriptor, content, mode)
        os.link(f"{_DESCRIPTORS}/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)
    except FileNotFoundError:
        return False
    finally:
        os.close(descriptor)
    return True


def _created_named(folder: int, name: str, content: bytes, mode: int) -> None:
    with _named(folder, content, mode) as unfinished:
        os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _named(folder: int, content: bytes, mode: int) -> Generator[str]:
    """A complete file under a name that nobody reads; gone afterwards, at the latest when the next writer comes."""
    unfinished = UNFINISHED + secrets.token_hex(8)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        try:
            _fill(descriptor, content, mode)
        finally:
            os.close(descriptor)
        yield unfinished
    finally:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)


def _fill(descriptor: int, content: bytes, mode: int) -> None:
    write_all(descriptor, content)
    os.fchmod(descriptor, mode)
    os.fsync(descriptor)


@contextmanager
def _descriptor(folder: Path) -> Generator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
