"""Reads and writes files of keys.

*Reading*: every entry of a folder gives bytes or one `KeyRefused`. A folder is opened once and its files are opened
relative to it, so the folder that was checked is the one that is read; a file is checked after it is opened, so it
can't be exchanged in between. Opening never blocks: a pipe among the keys must not stop a daemon.

*Writing*: a file is written whole or not at all, is on disk when the call returns, and never replaces another one. It
is created without a name (O_TMPFILE) and linked into its folder when it is complete; a writer that is killed leaves
nothing. If the file system does not support that, the file first has a name with a leading dot, which no reader opens,
and the next writer removes what a killed one left. The mode is right from the start. A lock on the folder, which ends
with the process, excludes other writers.
"""

from __future__ import annotations

import errno
import fcntl
import grp
import os
import pwd
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.files import UNFINISHED, write_all, write_whole
from partage_base.keyring.errors import KeyKept, KeyRefused
from partage_base.keyring.permissions import ACCOUNT, Us, check_folder

MOST_BYTES: Final = 16 * 1024

_QUIETLY: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_READABLE: Final = "a file that we may read"
_LISTABLE: Final = "a folder that we may read"

Check = Callable[[Path, os.stat_result, Us], None]


@dataclass(frozen=True)
class Folder:
    """An open folder whose owner and mode were checked."""

    path: Path
    descriptor: int
    us: Us

    def names(self) -> list[str]:
        """The names in it, sorted, without those that begin with a dot."""
        try:
            with os.scandir(self.descriptor) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except OSError as error:
            raise _unreadable(self.path, error, _LISTABLE) from None

    def read(self, name: str, check: Check) -> bytes:
        """A file's content, if it is a regular file, `check` accepts it and it is no larger than a key can be."""
        file = self.path / name
        try:
            descriptor = os.open(name, _QUIETLY, dir_fd=self.descriptor)
        except OSError as error:
            raise _unreadable(file, error, _READABLE) from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise KeyRefused(file, "is not a file", allowed="a regular file, or a link to one")
            check(file, status, self.us)
            return _bounded(descriptor, file)
        finally:
            os.close(descriptor)


@contextmanager
def opened_folder(path: Path) -> Generator[Folder]:
    """Opens a folder of keys; refuses anything else, and a folder where other users can write."""
    try:
        descriptor = os.open(path, _QUIETLY | os.O_DIRECTORY)
    except OSError as error:
        raise _unreadable(path, error, _LISTABLE) from None
    try:
        us = ourselves()
        check_folder(path, os.fstat(descriptor), us, read_only=_is_read_only(descriptor))
        yield Folder(path, descriptor, us)
    finally:
        os.close(descriptor)


def ourselves() -> Us:
    return Us(
        uid=os.geteuid(),
        gid=os.getegid(),
        groups=frozenset(os.getgroups()),
        account_uid=_account_uid(),
        account_gid=_account_gid(),
    )


def _is_read_only(descriptor: int) -> bool:
    try:
        return bool(os.fstatvfs(descriptor).f_flag & os.ST_RDONLY)
    except OSError:
        return False  # the stricter answer


def _bounded(descriptor: int, file: Path) -> bytes:
    content = b""
    try:
        while len(content) <= MOST_BYTES and (more := os.read(descriptor, MOST_BYTES + 1 - len(content))):
            content += more
    except OSError as error:
        raise _unreadable(file, error, _READABLE) from None
    if len(content) > MOST_BYTES:
        raise KeyRefused(file, "is too large for a key", allowed=f"at most {MOST_BYTES} bytes")
    return content


def _unreadable(file: Path, error: OSError, allowed: str) -> KeyRefused:
    return KeyRefused(file, f"can't be read: {error.strerror or error}", allowed=allowed)


def _account_uid() -> int | None:
    try:
        return pwd.getpwnam(ACCOUNT).pw_uid
    except KeyError:
        return None


def _account_gid() -> int | None:
    try:
        return grp.getgrnam(ACCOUNT).gr_gid
    except KeyError:
        return None


_NO_NAMELESS_FILES: Final = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})
_DESCRIPTORS: Final = "/proc/self/fd"


def make_folder(folder: Path, mode: int) -> None:
    """Makes a folder if it is missing, and its missing parents readable for all."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(mode=mode if each == folder else 0o755)
        with _descriptor(each.parent) as parent:
            os.fsync(parent)


@contextmanager
def locked(folder: Path, *others: Path) -> Generator[None]:
    """Excludes every other writer of these folders, and removes what a killed one left. The first is the lock."""
    with _descriptor(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for each in (folder, *others):
            for left in each.glob(f"{UNFINISHED}*"):
                left.unlink(missing_ok=True)
        yield


def create(file: Path, content: bytes, mode: int) -> None:
    """Creates a file; raises `KeyKept` if it exists."""
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
    """Creates or replaces a file: readers see the old content or the new."""
    write_whole(file, content, mode=mode, synced=True)


def remove(file: Path) -> None:
    """Removes a file durably, if it exists."""
    with _telling(file), _descriptor(file.parent) as folder:
        with suppress(FileNotFoundError):
            os.unlink(file.name, dir_fd=folder)
        os.fsync(folder)


@contextmanager
def _telling(file: Path) -> Generator[None]:
    """Puts the file's name into system errors, since the calls use descriptors."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


def _created_nameless(folder: int, name: str, content: bytes, mode: int) -> bool:
    """Returns False if the file system does not support it, or /proc is missing."""
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
    """A complete file under a name that no reader opens; removed afterwards, at the latest by the next writer."""
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
