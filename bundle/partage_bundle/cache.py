"""Downloads and build results, in ~/.cache/partage/bundle, for all checkouts of this user.

An entry is named by everything that determines its content. It is complete or absent: it is made in a separate folder,
synced to disk, and appears by one rename. Of two builders the second waits. Entries are read, copied and linked, never
written to.

Entries are bounded by their total size: when one is made, the least recently used are removed. Downloads, in the
folders `debs` and `uv`, are not counted: they contain what the locks name, once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, Literal, get_args

from partage_bundle.process import run

Kind = Literal["grounds", "layers", "objects", "runtimes", "trees", "wheels", "zig"]
MOST_BYTES: Final = 2 << 30
_DEAD_S: Final = 24 * 3600
"""No build takes this long."""
_IN_USE_S: Final = 2 * 3600
"""An entry may be read for this long after it was requested."""
_SHORT: Final = 16


@dataclass(frozen=True)
class Entry:
    path: Path
    size: int
    used_at: float


def root() -> Path:
    moved = os.environ.get("PARTAGE_BUNDLE_CACHE")
    return Path(moved) if moved else Path.home() / ".cache/partage/bundle"


def digest(*parts: str | bytes) -> str:
    """A short digest of exactly these parts, in this order."""
    whole = sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        whole.update(f"{len(content)}\n".encode() + content)
    return whole.hexdigest()[:_SHORT]


def digest_of_files(folders: list[Path], is_part: Callable[[Path], bool] = lambda _path: True) -> str:
    """Digest of names, modes and contents."""
    whole = sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*") if folder.is_dir() else [folder]):
            if path.is_file() and is_part(path):
                content = path.read_bytes()
                is_program = bool(path.stat().st_mode & 0o100)
                whole.update(f"{path.relative_to(folder.parent)} {is_program} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:_SHORT]


def digest_of_builder() -> str:
    """Digest of this program, which determines how things are made."""
    return digest(*(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


def made(kind: Kind, key: str, make: Callable[[Path], None]) -> Path:
    """The entry's folder; `make` fills an empty one if it does not exist."""
    entry = root() / kind / key
    if not _touched(entry):
        with lock(f"{kind}-{key}"):
            if not _touched(entry):
                _make(entry, make)
        _trim()
    return entry


@contextmanager
def lock(name: str) -> Generator[None]:
    with _lock_file(name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def surplus(entries: Iterable[Entry], most: int, now: float) -> list[Path]:
    """Entries to remove so that the rest fits `most`: the least recently used, and none that may be in use."""
    entries = sorted(entries, key=lambda each: each.used_at)
    over = sum(each.size for each in entries) - most
    gone: list[Path] = []
    for entry in entries:
        if over <= 0 or now - entry.used_at < _IN_USE_S:
            break
        gone.append(entry.path)
        over -= entry.size
    return gone


def _touched(entry: Path) -> bool:
    """Whether it exists; if so, marks it as used."""
    try:
        os.utime(entry)
    except FileNotFoundError:
        return False
    return True


def _make(entry: Path, make: Callable[[Path], None]) -> None:
    with workplace() as place:
        filled = place / "entry"
        filled.mkdir()
        make(filled)
        run(("sync", "-f", filled))
        entry.parent.mkdir(parents=True, exist_ok=True)
        filled.rename(entry)


def _trim() -> None:
    with lock("trim"):
        folders = [folder for kind in get_args(Kind) for folder in (root() / kind).glob("*")]
        found = [Entry(folder, _size(folder), folder.stat().st_mtime) for folder in folders]
        for path in surplus(found, MOST_BYTES, time.time()):
            _remove(path)


def _remove(entry: Path) -> None:
    """Skips an entry that a builder has locked."""
    with workplace() as place, _lock_file(f"{entry.parent.name}-{entry.name}") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        entry.rename(place / entry.name)


def _size(entry: Path) -> int:
    """A file with several hard links counts in parts, so that the sum over all entries is the space they take."""
    found = [each.lstat() for each in entry.rglob("*") if not each.is_dir()]
    return sum(each.st_size // each.st_nlink for each in found)


def _lock_file(name: str) -> IO[bytes]:
    path = root() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+b")


@contextmanager
def workplace() -> Generator[Path]:
    """A temporary folder on the cache's disk; also removes what killed builders left."""
    work = root() / "work"
    work.mkdir(parents=True, exist_ok=True)
    _clear_remains(work)
    with tempfile.TemporaryDirectory(dir=work) as name:
        yield Path(name)


def _clear_remains(work: Path) -> None:
    """Removes folders of killed builders; no build takes a day."""
    for remains in work.iterdir():
        if remains.stat().st_mtime < time.time() - _DEAD_S:
            shutil.rmtree(remains, ignore_errors=True)
