"""What pip installs: our wheels and sdists, made from the files that git knows, and the locked wheels of others.

Our wheel contains our C code built for each machine, and the manual pages. Those of others are for each requested
machine and Python; the locks of the trees determine which ones.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from partage_bundle import cache, locks, native, recipe, wheels
from partage_bundle.debian import copy
from partage_bundle.errors import NotFetched, StepFailed
from partage_bundle.process import ROOT, run, say
from partage_bundle.recipe import Machine

PYTHONS: Final = ("3.11", "3.12", "3.13")
"""Pythons of Debian 12, Ubuntu 24.04 and Debian 13."""
_PROJECTS: Final = (".", "simgpu")
_COMPILED: Final = {
    "isolation/partage_isolation/library/objects": native.objects,
    "oci/partage_oci/programs": native.program,
}
"""Where a wheel gets files that are built for each machine, and what builds them."""
_GLIBCS: Final = ("2_34", "2_31", "2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")
"""glibc versions that wheels of others may require: all distributions with such a Python have them."""
_OLD_NAMES: Final = ("manylinux2014", "manylinux2010", "manylinux1")


def own(machines: Iterable[Machine], into: Path, sources: Path) -> None:
    """Builds the wheels of both projects into one folder, their sdists into the other."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder)
        _export(checkout)
        for project in _PROJECTS:
            wheels.build(checkout / project, sources, "--sdist")
        for place, make in _COMPILED.items():
            for machine in machines:
                for path in sorted(make(machine).iterdir()):
                    copy(path, checkout / place / machine.name / path.name)
        run((sys.executable, "-P", "-m", "partage_cli", "man", "--into", checkout / "man/man1"))
        for project in _PROJECTS:
            wheels.build(checkout / project, into, "--wheel")
    for made in (into, sources):
        (made / ".gitignore").unlink(missing_ok=True)  # uv's


def others(machines: Sequence[Machine], pythons: Sequence[str], into: Path) -> None:
    """Copies each wheel once, even if several machines or Pythons need it."""
    for machine, python in product(machines, pythons):
        for path in sorted(_fetched(machine, python).iterdir()):
            if not (into / path.name).exists():
                shutil.copyfile(path, into / path.name)


def _fetched(machine: Machine, python: str) -> Path:
    lock_files = [locks.wheels(tree) for tree in recipe.TREES]
    key = cache.digest(*(lock.read_bytes() for lock in lock_files), Path(__file__).read_bytes())
    named = f"{machine.name}-{python}-{key}"
    return cache.made("wheels", named, lambda place: _fetch(machine, python, lock_files, place))


def _fetch(machine: Machine, python: str, lock_files: Iterable[Path], place: Path) -> None:
    say(f"fetching wheels for Python {python} on {machine.name}")
    platforms = [*(f"manylinux_{glibc}" for glibc in _GLIBCS), *_OLD_NAMES]
    flags = [word for name in platforms for word in ("--platform", f"{name}_{machine.name}")]
    plain = ("-q", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--implementation", "cp")
    for lock in lock_files:
        words = (sys.executable, "-m", "pip", "download", *plain, *flags, "--python-version", python)
        try:
            run((*words, "-d", place, "-r", lock))
        except StepFailed as error:
            raise NotFetched(
                f"cannot fetch what {lock} names for Python {python} on {machine.name}: {error}"
            ) from error


def _export(into: Path) -> None:
    """Copies the files that git tracks, or would after `git add --all`, as they are here."""
    listed = run(("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            copy(ROOT / name, into / name)
