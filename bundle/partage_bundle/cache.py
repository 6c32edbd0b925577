"""What was fetched and built, in ~/.cache/partage/bundle, for all checkouts of this user.

An entry is named by all that decides its content. It is there or it is not: it is made in a folder apart and appears by
one rename, on disk. Of two builders the second waits. Entries are read and copied, never written to.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from partage_bundle.process import run

_OLD_S: Final = 24 * 3600
_SHORT: Final = 16


def root() -> Path:
    moved = os.environ.get("PARTAGE_BUNDLE_CACHE")
    return Path(moved) if moved else Path.home() / ".cache/partage/bundle"


def digest(*parts: str | bytes) -> str:
    """A short name for exactly these parts, in this order."""
    whole = sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        whole.update(f"{len(content)}\n".encode() + content)
    return whole.hexdigest()[:_SHORT]


def digest_of_files(folders: list[Path], is_part: Callable[[Path], bool] = lambda _path: True) -> str:
    """Of names, modes and contents."""
    whole = sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*") if folder.is_dir() else [folder]):
            if path.is_file() and is_part(path):
                content = path.read_bytes()
                is_program = bool(path.stat().st_mode & 0o100)
                whole.update(f"{path.relative_to(folder.parent)} {is_program} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:_SHORT]


def made(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The entry's folder; `make` fills an empty one when it is not there."""
    entry = root() / kind / key
    if not _touched(entry):
        with lock(f"{kind}-{key}"):
            if not _touched(entry):
                _make(entry, make)
    return entry


def forget_old(kind: str) -> None:
    """Removes entries that were not asked for since yesterday."""
    before = time.time() - _OLD_S
    for entry in (root() / kind).glob("*"):
        if entry.stat().st_mtime < before:
            with _workplace() as place, lock(f"{kind}-{entry.name}"):
                if entry.is_dir() and entry.stat().st_mtime < before:
                    entry.rename(place / entry.name)


@contextmanager
def lock(name: str) -> Generator[None]:
    path = root() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _touched(entry: Path) -> bool:
    """Whether it is there; if so it is known as used."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return False
    return True


def _make(entry: Path, make: Callable[[Path], None]) -> None:
    with _workplace() as place:
        filled = place / "entry"
        filled.mkdir()
        make(filled)
        run(("sync", "-f", filled))
        entry.parent.mkdir(parents=True, exist_ok=True)
        filled.rename(entry)


@contextmanager
def _workplace() -> Generator[Path]:
    work = root() / "work"
    work.mkdir(parents=True, exist_ok=True)
    _clear_remains(work)
    with tempfile.TemporaryDirectory(dir=work) as name:
        yield Path(name)


def _clear_remains(work: Path) -> None:
    """Of builders that were killed; none works for a day."""
    for remains in work.iterdir():
        if remains.stat().st_mtime < time.time() - _OLD_S:
            shutil.rmtree(remains, ignore_errors=True)
