"""Builds the simulation from its C sources, once for each state of them.

A build is a folder named after a digest of its sources and its compiler. It is made from a copy of them and appears by
a rename, whole or not at all: two builders at once, an interrupted one and a source that is edited in between do no
harm. In a checkout builds lie in `.cache/simgpu`; an installed package carries the sources and builds into the user's
cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_isolation.simulation.errors import NotBuilt

PRODUCTS: Final = ("simgpud", "libcuda.so", "libnvidia-ml.so")
"""What every build has, besides the workloads."""
LOG: Final = "log"
READY_MADE: Final = "PARTAGE_SIMGPU"
"""The environment may name a folder that is used instead of a build of ours, such as one with sanitizers."""
_PACKAGE: Final = Path(__file__).parent
_IN_CHECKOUT: Final = _PACKAGE.parents[1] / "simgpu"
_IN_PACKAGE: Final = _PACKAGE / "simgpu"
_KEPT_S: Final = 24 * 3600
"""How long a build stays after its last use once there is a newer one."""
_SOURCES: Final = ("*.c", "*.h", "*.def", "*.map", "Makefile")


def sources() -> Path:
    """The folder with the Makefile, the C files and the profiles."""
    return _IN_CHECKOUT if (_IN_CHECKOUT / "Makefile").is_file() else _IN_PACKAGE


def built(*, into: Path | None = None) -> Path:
    """The folder of the programs and libraries; builds them first where this state of the sources is not built yet."""
    if ready_made := os.environ.get(READY_MADE):
        return Path(ready_made).resolve()
    builds = into or _builds()
    found = builds / _digest(sources())
    if not found.is_dir():
        builds.mkdir(parents=True, exist_ok=True)
        with _alone(builds):
            found = _build(builds)
            _forget_old(builds, found)
    os.utime(found)
    return found


def _builds() -> Path:
    if sources() == _IN_CHECKOUT:
        return _IN_CHECKOUT.parents[1] / ".cache/simgpu"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partage/simgpu"


def _digest(folder: Path) -> str:
    digest = hashlib.sha256(_toolchain().encode())
    for name, content in _contents(folder).items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _contents(folder: Path) -> dict[str, bytes]:
    """What a build is made from."""
    files = sorted(found for pattern in _SOURCES for found in folder.rglob(pattern))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _toolchain() -> str:
    """What make takes from the environment, and the machine that it builds for."""
    return f"{os.uname().machine} {os.environ.get('CC', 'cc')} {os.environ.get('CFLAGS', '')}".strip()


@contextmanager
def _alone(builds: Path) -> Generator[None]:
    with (builds / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(builds: Path) -> Path:
    """Builds from a copy of the sources, so that nothing changes under the compiler.

    Objects of the build before serve again where their sources are the same, unless that build was interrupted.
    """
    work = builds / f"work-{hashlib.sha256(_toolchain().encode()).hexdigest()[:8]}"
    copy, out, unfinished = work / "sources", work / "out", work / "unfinished"
    if unfinished.exists():
        shutil.rmtree(work)
    copy.mkdir(parents=True, exist_ok=True)
    _mirror(sources(), copy)
    target = builds / _digest(copy)
    if target.is_dir():
        return target
    unfinished.touch()
    failure = _make(copy, out)
    unfinished.unlink()
    if failure is not None:
        raise NotBuilt(f"the simulated GPU does not build: {failure}; all of it is in {out / LOG}")
    fresh = target.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(out, fresh, ignore=shutil.ignore_patterns("objects", LOG))
    fresh.rename(target)
    return target


def _mirror(folder: Path, copy: Path) -> None:
    """Writes only what differs: make goes by the times of files."""
    wanted, there = _contents(folder), _contents(copy)
    for name in there.keys() - wanted.keys():
        (copy / name).unlink()
    for name, content in wanted.items():
        if there.get(name) != content:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(content)


def _make(folder: Path, out: Path) -> str | None:
    """What went wrong, in the words of the first who complained."""
    if any(character.isspace() for character in str(out)):
        raise NotBuilt(f"{out}: make cannot build in a folder with spaces in its name; set XDG_CACHE_HOME to another")
    compiler = os.environ.get("CC", "cc").split()[0]
    for tool in ("make", compiler):
        if shutil.which(tool) is None:
            raise NotBuilt(f"the simulated GPU is built on first use and needs {tool}; install gcc and make")
    argv = ["make", "-C", str(folder), "-j", str(os.cpu_count() or 1), f"OUT={out}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 (our own Makefile)
    out.mkdir(exist_ok=True)
    (out / LOG).write_text(done.stdout + done.stderr)
    if done.returncode == 0:
        return None
    return next((line for line in done.stderr.splitlines() if "error:" in line or "***" in line), "make failed")


def _forget_old(builds: Path, newest: Path) -> None:
    for folder in builds.iterdir():
        is_build = len(folder.name) == len(newest.name) and folder.is_dir()
        if is_build and folder != newest and folder.stat().st_mtime < time.time() - _KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)
