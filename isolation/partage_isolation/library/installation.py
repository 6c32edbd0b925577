"""Installs the library for containers, in a folder of its version, with the exports of the node's driver.

A version is a digest of the three objects as they are written, so that an existing folder is never written again:
running containers have it mounted. It is created atomically by a rename, and then made the current one. Concurrent
installers do no harm: the last one to finish determines the current version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.version import VERSION
from partage_gpu.driver_root import file_below, installed_root
from partage_isolation.library import elf
from partage_isolation.library.current import NEW, make_current, sync
from partage_isolation.library.errors import FileRefused, NotInstalled
from partage_isolation.library.exports import Fitted, fit_exports
from partage_isolation.library.objects import CUDA, NVML, OBJECTS, built

_FORGOTTEN_S: Final = 3600
"""Age at which a leftover folder is removed: an interrupted installer leaves one, and none takes that long."""


@dataclass(frozen=True)
class Installed:
    version: str
    folder: Path
    added: tuple[str, ...]
    """The driver's names that were given to spare exports."""
    hidden: tuple[str, ...]
    """Names of our tables that the driver lacks."""
    left_out: tuple[str, ...]
    """The driver's functions for which no spare was left: programs that need one of them do not find it."""


def install(folder: Path, driver_root: Path = Path("/"), *, objects: Path | None = None) -> Installed:
    """Write `folder`/<version> if it does not exist, and make it the current one. Raises `LibraryError`.

    `objects` is the folder of the built ones. Without a driver below `driver_root` the library has the names of its
    tables.
    """
    fitted = _fitted(objects or built(), installed_root(str(driver_root)))
    contents = {name: each.content for name, each in fitted.items()}
    version = f"{VERSION}-{_digest(contents)}"
    try:
        _make(folder)
        _forget(folder)
        _put(folder, folder / version, contents)
        make_current(folder, version)
    except OSError as error:
        raise NotInstalled(f"the preload library cannot be written to {folder}: {error}") from error
    return Installed(
        version,
        folder / version,
        added=tuple(name for each in fitted.values() for name in each.added),
        hidden=tuple(name for each in fitted.values() for name in each.hidden),
        left_out=tuple(name for each in fitted.values() for name in each.left_out),
    )


def _make(folder: Path) -> None:
    """Make a folder and its parents, readable by all despite the umask: the linker skips an unreadable library."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _fitted(objects: Path, driver_root: str) -> dict[str, Fitted]:
    try:
        fitted = {name: Fitted((objects / name).read_bytes()) for name in OBJECTS}
    except OSError as error:
        raise NotInstalled(f"the preload library is not in {objects}: {error}") from error
    for name in (CUDA, NVML):
        functions = _driver_functions(driver_root, name)
        if functions is not None:
            fitted[name] = fit_exports(fitted[name].content, functions, name)
    return fitted


def _driver_functions(driver_root: str, name: str) -> frozenset[str] | None:
    """Exports of a library of the driver; None if it does not exist."""
    path = file_below(driver_root, name)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise FileRefused(f"{path}: {error.strerror}") from error
    try:
        return elf.read(lambda offset, size: os.pread(descriptor, size, offset), path).functions()
    except OSError as error:
        raise FileRefused(f"{path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _digest(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def _put(folder: Path, target: Path, contents: dict[str, bytes]) -> None:
    if target.is_dir():
        return _compare(target, contents)
    fresh = Path(tempfile.mkdtemp(prefix=NEW, dir=folder))
    try:
        _write(fresh, contents)
        fresh.rename(target)
    except OSError:
        if not target.is_dir():  # otherwise another installer was first
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    sync(folder)
    return _compare(target, contents)


def _write(fresh: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        with (fresh / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        (fresh / name).chmod(0o644)
    fresh.chmod(0o755)
    sync(fresh)


def _compare(target: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        if not (target / name).is_file() or (target / name).read_bytes() != content:
            raise NotInstalled(f"{target / name} is not what was installed there; remove {target} and install again")


def _forget(folder: Path) -> None:
    for left in folder.glob(f"{NEW}*"):
        with suppress(FileNotFoundError):  # its owner has finished
            if left.stat().st_mtime < time.time() - _FORGOTTEN_S:
                shutil.rmtree(left, ignore_errors=True)
