"""Writes a whole file or none: a reader finds the old or the new content, also after a crash.

The content is written to a file beside it under a name that no reader opens, then renamed. If any step fails, as on a
full disk, that file is removed and the old one stays. A writer that is killed can leave one behind: each daemon clears
its folders when it starts, and a reader that holds a lock of the folder may remove names that begin with `UNFINISHED`
at once.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".unfinished-"
UNDER_WAY_S: Final = 60.0
"""Age below which a file may still be in use by its writer."""
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_TOKEN_BYTES: Final = 8
_OWNER_ALONE: Final = 0o600


def write_whole(path: str | Path, content: bytes, *, mode: int = _OWNER_ALONE, synced: bool = False) -> os.stat_result:
    """Writes or replaces a file and returns its status. Raises `OSError` with the file's own name.

    The mode does not depend on the umask. `synced`: it is on disk when this returns. A container waits for some of
    these files, so paths may be plain strings: as `Path` they cost as much as the writing.
    """
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, UNFINISHED + os.urandom(_TOKEN_BYTES).hex())  # noqa: PTH118  see above
    try:
        try:
            status = _filled(unfinished, content, mode, synced=synced)
            os.rename(unfinished, path)  # noqa: PTH104  see above
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)  # noqa: PTH108  see above
            raise
        if synced:
            sync_folder(folder or ".")
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.path.join(folder, name)) from error  # noqa: PTH118  see above
    return status


def clear_unfinished(*folders: Path) -> None:
    """Removes what killed writers left in these folders, but not below them; failures are ignored."""
    before = time.time() - UNDER_WAY_S
    for folder in folders:
        with contextlib.suppress(OSError):
            for left in folder.glob(f"{UNFINISHED}*"):
                if left.lstat().st_mtime < before:
                    left.unlink()


def write_all(descriptor: int, content: bytes) -> None:
    """Writes all of `content`, in several writes if necessary."""
    while content:
        content = content[os.write(descriptor, content) :]


def _filled(unfinished: str, content: bytes, mode: int, *, synced: bool) -> os.stat_result:
    descriptor = os.open(unfinished, _FLAGS, _OWNER_ALONE)
    try:
        write_all(descriptor, content)
        if mode != _OWNER_ALONE:
            os.fchmod(descriptor, mode)
        if synced:
            os.fsync(descriptor)
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: str | Path) -> None:
    """Syncs the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
