"""A build cache that all checkouts of a user share, keyed by everything that determines a build.

An entry appears by one rename and holds its own digest: a damaged one counts as missing. A checkout gets a copy of an
entry, so that it needs nothing outside itself afterwards.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_CONTENT: Final = "content"
_DIGEST: Final = "digest"
_KEPT_S: Final = 14 * 24 * 3600
"""How long a build is kept after its last use."""


def shared() -> Path:
    """The folder of this user's entries."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partage/built"


def built_once(key: str, folder: Path, make: Callable[[Path], None]) -> Path:
    """Fills `folder` from the entry with this key, or else by `make`, which gets an empty folder."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir() and not take(shared() / key, folder):
                _build(shared() / key, folder, make)
                _forget_old(folder.parent)
    os.utime(folder)
    return folder


def take(entry: Path, folder: Path) -> bool:
    """Copies the entry to the folder, if it exists and is intact."""
    if not entry.is_dir():
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder.parent) as work:
        fresh = Path(work) / folder.name
        if not _copied(entry, fresh):
            shutil.rmtree(entry, ignore_errors=True)
            return False
        _publish(fresh, folder)
    return True


def keep(folder: Path, entry: Path) -> None:
    """Copies the folder to the entry. If the cache can't be written, the only cost is another build."""
    with suppress(OSError, shutil.Error):
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=entry.parent) as work:
            fresh = Path(work) / entry.name
            shutil.copytree(folder, fresh / _CONTENT)
            (fresh / _DIGEST).write_text(digest_of(fresh / _CONTENT), encoding="ascii")
            _publish(fresh, entry)
        _forget_old(entry.parent)


def key_of(*parts: str, sources: Iterable[Path] = ()) -> str:
    """A key of all files below the sources, the parts, and this machine's toolchain."""
    whole = (*parts, toolchain(), *(digest_of(source) for source in sources))
    return hashlib.sha256(repr(whole).encode()).hexdigest()[:32]


def digest_of(folder: Path) -> str:
    """Digest of names, modes and contents."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content, mode = path.read_bytes(), path.stat().st_mode & 0o111
            whole.update(f"{path.relative_to(folder)} {mode:o} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def toolchain() -> str:
    """The machine, its libc, the versions of compiler and linker, and the flags that make uses."""
    said = [_first_line(tool) for tool in (os.environ.get("CC", "cc"), "ld")]
    flags = [f"{name}={os.environ.get(name, '')}" for name in ("CC", "CFLAGS", "LDFLAGS")]
    return " | ".join([os.uname().machine, os.confstr("CS_GNU_LIBC_VERSION") or "", *said, *flags])


def _first_line(tool: str) -> str:
    """The first line of the tool's --version."""
    with suppress(OSError, IndexError):
        argv = [*tool.split(), "--version"]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()[0]  # noqa: S603
    return f"no {tool}"


def _build(entry: Path, folder: Path, make: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder.parent) as work:
        fresh = Path(work) / folder.name
        fresh.mkdir()
        make(fresh)
        keep(fresh, entry)
        _publish(fresh, folder)


def _copied(entry: Path, fresh: Path) -> bool:
    try:
        shutil.copytree(entry / _CONTENT, fresh)
        os.utime(entry)
        return (entry / _DIGEST).read_text(encoding="ascii") == digest_of(fresh)
    except (OSError, shutil.Error):
        return False


def _publish(fresh: Path, folder: Path) -> None:
    """If another builder was first, its result is the same."""
    try:
        fresh.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _forget_old(store: Path) -> None:
    for entry in store.iterdir():
        with suppress(FileNotFoundError):  # another process removed it first
            if entry.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(entry, ignore_errors=True)
