"""Opens folders and reads files of keys: whatever lies there gives bytes or one `KeyRefused`.

A folder is opened once and its files are opened relative to it, so the folder that was checked is the one that is read.
What is checked of a file is checked on the open file, so nobody can exchange it in between. Opening never waits: a pipe
among the keys must not stop a daemon.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.keyring.errors import KeyRefused
from partage_base.keyring.permissions import ACCOUNT, Us, check_folder

MOST_BYTES: Final = 16 * 1024

_QUIETLY: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_READABLE: Final = "a file that we may read"
_LISTABLE: Final = "a folder that we may read"

Check = Callable[[Path, os.stat_result, Us], None]


@dataclass(frozen=True)
class Folder:
    """An open folder whose owner and mode are good."""

    path: Path
    descriptor: int
    us: Us

    def names(self) -> list[str]:
        """What lies here, sorted; nothing that begins with a dot."""
        try:
            with os.scandir(self.descriptor) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except OSError as error:
            raise _unreadable(self.path, error, _LISTABLE) from None

    def read(self, name: str, check: Check) -> bytes:
        """A file's content, if it is a file, `check` has nothing against it and it is no larger than a key can be."""
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
    """Opens a folder of keys, if it is one and nobody else can write there."""
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
    """Who this process is."""
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
