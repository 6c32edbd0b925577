"""Finds the system's programs, and gets missing ones from Debian's archive.

A program counts if it exists, no matter who installed it: other systems are searched in the same way, and only the
installation is left to their users.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Final

from rig.errors import BuildFailed, MachineUnfit
from rig.programs.cache import Cache
from rig.programs.recipes import Find, Installed, Unpacked
from rig.programs.steps import Step, Task, run, spent

_SBIN: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_ENV: Final = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
_INTERPRETED: Final = 3
"""PT_INTERP: the program header that names a loader; static programs have none."""
_APT_WAITS: Final = ("-o", "DPkg::Lock::Timeout=300")


def find_installed(recipe: Installed) -> dict[str, Path] | None:
    found = {find.name: located(find) for find in recipe.finds}
    return {name: path for name, path in found.items() if path} if all(found.values()) else None


def located(find: Find) -> Path | None:
    return next((path for place in find.places for path in _at(place) if _fits(path, find)), None)


def unpacked_key(recipe: Unpacked) -> str:
    """The entry's name in the cache; a package of one release is not used for another."""
    release = _release()
    text = repr((recipe, release, os.uname().machine))
    return f"{recipe.package}-{release}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def install(recipes: Sequence[Installed], task: Task) -> None:
    """Install what is missing, or raise `MachineUnfit` with the packages to install."""
    packages = [package for recipe in recipes for package in recipe.packages]
    _need_apt([recipe.name for recipe in recipes], packages, as_root=True)
    task.teller.line(f"{task.title}: installing with apt, log {task.log}")
    _update(task)
    flags = ("-q", "-y", "--no-install-recommends", *_APT_WAITS)
    run(task, Step(("apt-get", "install", *flags, *packages), Path("/"), _environment(), is_bound=False))
    still = [recipe.name for recipe in recipes if find_installed(recipe) is None]
    if still:
        raise task.failed(f"apt installed {', '.join(packages)}, but {', '.join(still)} cannot be found")
    task.teller.line(f"{task.title}: installed, {spent(task.seconds)}")


def unpack(recipe: Unpacked, cache: Cache, task: Task) -> None:
    """Make the cache entry; needs its lock."""
    _need_apt([recipe.name], [recipe.package], as_root=False)
    task.teller.line(f"{task.title}: fetching with apt, log {task.log}")
    key = unpacked_key(recipe)
    with cache.workplace(key) as work:
        _download(recipe, work, task)
        archive = next(work.glob("*.deb"))
        run(task, Step(("dpkg-deb", "-x", archive.name, "files"), work, _environment()))
        program = work / "made/bin" / Path(recipe.inside).name
        program.parent.mkdir(parents=True)
        for name in (program.name, *recipe.beside):
            shutil.move(work / "files" / Path(recipe.inside).with_name(name), program.with_name(name))
        if not _fits(program, recipe.find):
            raise task.failed(f"{recipe.inside} of {recipe.package} is not the program that it should be")
        cache.publish(work / "made", key)
    task.teller.line(f"{task.title}: done, {spent(task.seconds)}")


def is_static(path: Path) -> bool:
    """Whether an ELF program needs no loader and thus no libraries."""
    data = path.read_bytes()[:4096]
    if data[:5] != b"\x7fELF\x02":  # 64-bit; the rig supports no other
        return False
    start, size, count = (int.from_bytes(data[at : at + n], "little") for at, n in ((32, 8), (54, 2), (56, 2)))
    kinds = [int.from_bytes(data[start + size * i : start + size * i + 4], "little") for i in range(count)]
    return _INTERPRETED not in kinds


def _download(recipe: Unpacked, work: Path, task: Task) -> None:
    """Download with the existing package lists; if they are missing or outdated, update them first."""
    step = Step(("apt-get", "download", "-q", recipe.package), work, _environment())
    try:
        run(task, step)
    except BuildFailed:
        if os.geteuid() != 0:
            raise
        _update(task)
        run(task, step)


def _update(task: Task) -> None:
    run(task, Step(("apt-get", "update", "-q", *_APT_WAITS), Path("/"), _environment(), is_bound=False))


def _need_apt(names: Sequence[str], packages: Sequence[str], *, as_root: bool) -> None:
    is_root = os.geteuid() == 0
    if shutil.which("apt-get") and (is_root or not as_root):
        return
    lacking = f"this machine lacks {', '.join(names)}"
    if shutil.which("apt-get"):
        raise MachineUnfit(f"{lacking}; as root: apt-get install --no-install-recommends {' '.join(packages)}")
    raise MachineUnfit(f"{lacking}; install them (Debian's packages are called {', '.join(packages)}), then try again")


def _at(place: str) -> list[Path]:
    if "/" in place:
        return [Path(found) for found in sorted(glob(place))]  # noqa: PTH207 - a path, not a folder's content
    path = os.pathsep.join([os.environ.get("PATH") or os.defpath, *_SBIN])
    return [Path(found).absolute()] if (found := shutil.which(place, path=path)) else []


def _fits(path: Path, find: Find) -> bool:
    beside = all((path.parent / name).is_file() for name in find.beside)
    return path.is_file() and beside and (not find.is_static or is_static(path))


def _environment() -> dict[str, str]:
    return {**os.environ, **_ENV}


def _release() -> str:
    """Such as `debian12`; a system without the information has a name of its own."""
    try:
        lines = Path("/etc/os-release").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "unknown"
    said = dict(line.split("=", 1) for line in lines if "=" in line)
    return (said.get("ID", "unknown") + said.get("VERSION_ID", "")).replace('"', "").replace("/", "-")
