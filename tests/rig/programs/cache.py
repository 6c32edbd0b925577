"""The cache: a folder for each component, named by its version and by a hash of everything that affects its build.

An entry exists completely or not at all: it is built in another folder and appears by one rename. Each has a lock, so
that of two builders the second waits, and finds the result. A builder that dies loses its locks.

    kubernetes-1.37.2-1f0c52b7/bin/kubelet     an entry
    work/                                      builds in progress; remains of dead builders are removed
    locks/, logs/                              one for each entry
    go/                                        Go's own caches, by which interrupted work is not repeated
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit
from rig.programs.steps import Lines, spent

_LOOK_EVERY_S: Final = 0.2


@dataclass(frozen=True)
class Cache:
    root: Path

    @property
    def go(self) -> Path:
        return self.root / "go"

    def entry(self, key: str) -> Path:
        return self.root / key

    def log(self, key: str) -> Path:
        """The entry's log, truncated for the present attempt."""
        path = self.root / "logs" / f"{key}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        return path

    @contextmanager
    def lock(self, key: str, teller: Lines) -> Generator[None]:
        """Lock the entry; reports which builder it waits for."""
        path = self.root / "locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="ascii") as file:
            if not _is_locked(file.fileno()):
                _wait(file.fileno(), f"{key}: {_holder(path)} makes it; waiting", teller)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    @contextmanager
    def workplace(self, key: str) -> Generator[Path]:
        """A folder for building the entry; needs its lock."""
        work = self.root / "work"
        work.mkdir(parents=True, exist_ok=True)
        for remains in work.glob(f"{key}.*"):
            shutil.rmtree(remains, ignore_errors=True)  # a compiler of a killed builder may still write there
        place = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=work))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def publish(self, made: Path, key: str) -> None:
        """Make the entry appear, complete and flushed to disk; a damaged one is replaced."""
        for file in made.rglob("*"):
            if file.is_file():
                _flush(file)
        if self.entry(key).exists():
            self.entry(key).rename(made.parent / "damaged")
        made.rename(self.entry(key))


def cache_of(environ: Mapping[str, str]) -> Cache:
    root = Path(environ.get("PARTAGE_RIG_CACHE") or _user_cache(environ) / "partage/rig").absolute()
    if os.pathsep in str(root):
        raise MachineUnfit(
            f"the rig's cache cannot be {root}: Go takes '{os.pathsep}' for a list; set PARTAGE_RIG_CACHE"
        )
    return Cache(root)


def _user_cache(environ: Mapping[str, str]) -> Path:
    """The XDG cache folder, in which relative paths are invalid. Without HOME the user's entry in passwd is used."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    try:
        return Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir) / ".cache"
    except KeyError:
        raise MachineUnfit("there is no home folder to keep the rig's programs in: set PARTAGE_RIG_CACHE") from None


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(fd: int, why: str, teller: Lines) -> None:
    """Poll, so that the user sees progress and Ctrl-C works."""
    started = time.monotonic()
    teller.line(why)
    while not _is_locked(fd):
        teller.status(f"{why}, {spent(time.monotonic() - started)} so far")
        time.sleep(_LOOK_EVERY_S)


def _holder(path: Path) -> str:
    pid = path.read_text(encoding="ascii", errors="replace")
    return f"process {pid}" if pid else "another process"


def _flush(file: Path) -> None:
    fd = os.open(file, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
