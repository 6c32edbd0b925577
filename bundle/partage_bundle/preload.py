"""The preload library and the writer of pages, built for any machine by a locked compiler.

zig's has the symbols of old glibc and builds for every machine alike. It fills 0.5 GiB, and is kept in the
cache alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_bundle import cache, wheels
from partage_bundle.debian import copy
from partage_bundle.process import ROOT, run, say
from partage_bundle.recipe import Machine

_LOCK: Final = ROOT / "requirements/release/zig.txt"
_FLAGS: Final = "-O2 -g0"
"""zig adds what debuggers read unless told not to, with the paths of this checkout and of the cache."""
_FOLDERS: Final = ("preload", "page")
_SOURCES: Final = (*(ROOT / "isolation" / name for name in _FOLDERS), ROOT / "isolation/driver")


def objects(machine: Machine) -> Path:
    """A folder of files to install."""
    how = Path(__file__).read_bytes()
    key = cache.digest(cache.digest_of_files(list(_SOURCES), _is_source), _LOCK.read_bytes(), how)
    return cache.made("objects", f"{machine.name}-{key}", lambda place: _build(place, machine))


def compiler() -> Path:
    """zig, for any machine."""
    key = cache.digest(_LOCK.read_bytes())
    return cache.made("zig", key, lambda folder: wheels.install_locked(_LOCK, folder)) / "ziglang/zig"


def _is_source(path: Path) -> bool:
    return "tests" not in path.parts and "__pycache__" not in path.parts and path.suffix != ".md"


def _build(place: Path, machine: Machine) -> None:
    zig = compiler()
    say(f"building the preload library for {machine.name}")
    out = place.with_name("out")
    env = {name: str(place.with_name("zig")) for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    for name in _FOLDERS:
        words = ("make", "--quiet", "-C", ROOT / "isolation" / name, f"release-{machine.name}")
        run((*words, f"OUT={out}", f"ZIG={zig}", f"CFLAGS={_FLAGS}"), env=env)
    for path in sorted((out / machine.name).glob("lib*")):
        if path.is_file():
            copy(path, place / path.name)
