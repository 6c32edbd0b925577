"""Builds our C sources with make, once for each state of them.

A build is a folder named after a digest of its sources and its compiler. It is made from a copy of them and appears by
a rename, whole or not at all: two concurrent builders, an interrupted one and a source edited meanwhile do no harm.
Other checkouts of the same user can reuse a build.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.built_once import keep, key_of, shared, take
from partage_plugins.errors import PartageError

LOG: Final = "log"
_KEPT_S: Final = 24 * 3600
"""How long a build is kept after its last use, once there is a newer one."""
_SOURCES: Final = ("*.c", "*.h", "*.S", "*.inc", "*.def", "*.map", "Makefile")


@dataclass(frozen=True)
class Compilation:
    """What to build, and where builds are stored."""

    what: str
    sources: Path
    builds: Path
    failure: type[PartageError]
    """Raised when the build fails: with what is missing, or the compiler's error."""
    without: frozenset[str] = frozenset()
    """Folders in the sources that don't belong to it."""
    beside: tuple[Path, ...] = ()
    """Folders whose files it includes: their copies are beside that of the sources."""
    variables: tuple[str, ...] = ()
    """More arguments of make, as NAME=value."""
    is_shared: bool = False
    """Whether another checkout's build may be used."""

    def built(self) -> Path:
        """The folder of the build; builds it first if this state of the sources is not built yet."""
        found = self.builds / self._digest(self._sources())
        if not found.is_dir():
            self.builds.mkdir(parents=True, exist_ok=True)
            with _alone(self.builds):
                found = found if self.is_shared and take(self._entry(found), found) else self._build()
                if self.is_shared and not self._entry(found).is_dir():
                    keep(found, self._entry(found))
                _forget_old(self.builds, found)
        os.utime(found)
        return found

    def _entry(self, found: Path) -> Path:
        return shared() / key_of(self.what, found.name, *self.variables)

    def _sources(self) -> list[Path]:
        return [self.sources, *self.beside]

    def _digest(self, folders: Iterable[Path]) -> str:
        digest = hashlib.sha256(_toolchain().encode())
        for name, content in self._contents(folders).items():
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return digest.hexdigest()[:16]

    def _contents(self, folders: Iterable[Path]) -> dict[str, bytes]:
        """The files of a build, by path relative to the parent folder."""
        return {
            str(file.relative_to(folder.parent)): file.read_bytes()
            for folder in folders
            for file in sorted(found for pattern in _SOURCES for found in folder.rglob(pattern))
            if file.relative_to(folder).parts[0] not in self.without
        }

    def _build(self) -> Path:
        """Builds from a copy of the sources, so that nothing changes under the compiler.

        Objects of the last build are reused if their sources are the same, unless that build was interrupted.
        """
        work = self.builds / f"work-{hashlib.sha256(_toolchain().encode()).hexdigest()[:8]}"
        copy, out, unfinished = work / "sources", work / "out", work / "unfinished"
        if unfinished.exists():
            shutil.rmtree(work)
        copy.mkdir(parents=True, exist_ok=True)
        self._mirror(copy)
        target = self.builds / self._digest(copy / folder.name for folder in self._sources())
        if target.is_dir():
            return target
        unfinished.touch()
        failure = self._make(copy / self.sources.name, out)
        unfinished.unlink()
        if failure is not None:
            raise self.failure(f"{self.what} does not build: {failure}; all of it is in {out / LOG}")
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(out, fresh, ignore=shutil.ignore_patterns("objects", LOG))
        fresh.rename(target)
        return target

    def _mirror(self, copy: Path) -> None:
        """Writes only files that differ, since make compares modification times."""
        wanted = self._contents(self._sources())
        there = self._contents(copy / folder.name for folder in self._sources())
        for name in there.keys() - wanted.keys():
            (copy / name).unlink()
        for name, content in wanted.items():
            if there.get(name) != content:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes(content)

    def _make(self, folder: Path, out: Path) -> str | None:
        """Runs make; returns its first error, or None."""
        if any(character.isspace() for character in str(out)):
            raise self.failure(
                f"{out}: make cannot build in a folder with spaces in its name; set XDG_CACHE_HOME to another"
            )
        compiler = os.environ.get("CC", "cc").split()[0]
        for tool in ("make", compiler):
            if shutil.which(tool) is None:
                raise self.failure(f"{self.what} is built on first use and needs {tool}; install gcc and make")
        argv = ["make", "-C", str(folder), "-j", str(os.cpu_count() or 1), f"OUT={out}", *self.variables]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 (our own Makefile)
        out.mkdir(exist_ok=True)
        (out / LOG).write_text(done.stdout + done.stderr)
        if done.returncode == 0:
            return None
        return next((line for line in done.stderr.splitlines() if "error:" in line or "***" in line), "make failed")


def cache_folder(name: str, checkout: Path | None) -> Path:
    """Where builds are stored: `.cache` of the checkout, or the user's cache for an installed package."""
    if checkout is not None:
        return checkout / ".cache" / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partage" / name


def _toolchain() -> str:
    """The machine, and make's variables from the environment."""
    return f"{os.uname().machine} {os.environ.get('CC', 'cc')} {os.environ.get('CFLAGS', '')}".strip()


@contextmanager
def _alone(builds: Path) -> Generator[None]:
    with (builds / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old(builds: Path, newest: Path) -> None:
    for folder in builds.iterdir():
        is_build = len(folder.name) == len(newest.name) and folder.is_dir()
        if is_build and folder != newest and folder.stat().st_mtime < time.time() - _KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)
