"""The version that new containers get: the target of a link called `current`, which the installer sets last.

Containers get the version's own folder and never the link, so a running one keeps what it has. The link is replaced by
a rename: a reader finds the former version or the new one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from partage_isolation.errors import NoLibrary
from partage_isolation.library.objects import OBJECTS

CURRENT: Final = "current"
NEW: Final = ".new-"
"""Prefix of unfinished files, each a folder."""


def library_for_new(folder: Path) -> Path:
    """The folder of the current version in `folder`; raises `NoLibrary`."""
    try:
        version = os.readlink(folder / CURRENT)  # noqa: PTH115  a Path would lose a slash at the end
    except OSError:
        raise _none_in(folder) from None
    if version in ("", ".", "..") or "/" in version:
        raise _none_in(folder, f": {CURRENT} names {version}, which is no version")
    if not all((folder / version / name).is_file() for name in OBJECTS):
        raise _none_in(folder, f": {CURRENT} names {version}, which is not there, or not whole")
    return folder / version


def make_current(folder: Path, version: str) -> None:
    """Select the version for new containers; it is on disk before this returns."""
    fresh = Path(tempfile.mkdtemp(prefix=NEW, dir=folder))
    try:
        (fresh / CURRENT).symlink_to(version)
        (fresh / CURRENT).rename(folder / CURRENT)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    sync(folder)


def sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _none_in(folder: Path, why: str = "") -> NoLibrary:
    return NoLibrary(
        f"no preload library is installed in {folder}{why}, and without it no limit would hold; "
        "install it with `partage-broker --install-library`"
    )
