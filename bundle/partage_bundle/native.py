"""Our C code, built for any machine by a locked compiler.

zig has the symbols of old glibc, which the preload library needs inside other people's containers, and a musl to link
partage-oci with, so that it is static. It builds for all machines alike. It takes 0.5 GiB, and is kept only in the
cache.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from partage_bundle import cache, wheels
from partage_bundle.debian import copy
from partage_bundle.process import ROOT, run, say
from partage_bundle.recipe import Machine

LOCK: Final = ROOT / "requirements/release/zig.txt"
_FLAGS: Final = "-O2 -g0"
"""Without -g0 zig adds debug information, with the paths of this checkout and of the cache."""


def objects(machine: Machine) -> Path:
    """The folder of the preload library's objects, and of the broker's page writer."""
    return _built(machine, ("isolation/preload", "isolation/page"), ("isolation/driver",))


def program(machine: Machine) -> Path:
    """The folder of partage-oci, with the licence of the libc that is linked statically."""
    return _built(machine, ("oci/runtime",), licence="lib/libc/musl/COPYRIGHT")


def compiler() -> Path:
    """zig, which builds for every machine that is supported."""
    key = cache.digest(LOCK.read_bytes())
    return cache.made("zig", key, lambda folder: wheels.install_locked(LOCK, folder)) / "ziglang/zig"


def _built(
    machine: Machine, made: tuple[str, ...], included: tuple[str, ...] = (), *, licence: str | None = None
) -> Path:
    """What `make` builds in these folders, and one file of zig; the included folders have only headers."""
    sources = cache.digest_of_files([ROOT / name for name in (*made, *included)], _is_source)
    key = cache.digest(sources, LOCK.read_bytes(), Path(__file__).read_bytes())
    return cache.made("objects", f"{machine.name}-{key}", lambda place: _make(place, machine, made, licence))


def _is_source(path: Path) -> bool:
    return "tests" not in path.parts and "__pycache__" not in path.parts and path.suffix != ".md"


def _make(place: Path, machine: Machine, made: tuple[str, ...], licence: str | None) -> None:
    zig = compiler()
    say(f"building {' and '.join(made)} for {machine.name}")
    out = place.with_name("out")
    env = {name: str(place.with_name("zig")) for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    for folder in made:
        words = ("make", "--quiet", "-C", ROOT / folder, f"release-{machine.name}")
        run((*words, f"OUT={out}", f"ZIG={zig}", f"CFLAGS={_FLAGS}"), env=env)
    for path in sorted((out / machine.name).iterdir()):
        if path.is_file():
            copy(path, place / path.name)
    if licence is not None:
        copy(zig.parent / licence, place / Path(licence).name)
