"""Debian's packages: fetched by hash from the mirrors of this machine's apt, unpacked, and locked.

apt fetches them, so its proxies and certificates apply. It need know only its own architecture: packages are fetched by
path, and to write a lock apt gets separate lists and state.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from partage_bundle import cache, locks, recipe
from partage_bundle.errors import BundleError, NotFetched, StepFailed
from partage_bundle.process import run, say
from partage_bundle.recipe import Machine

_HELPER: Final = "/usr/lib/apt/apt-helper"
_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_AS_OURSELVES: Final = ("-o", f"APT::Sandbox::User={os.environ.get('USER', 'root')}")
_SECURITY: Final = "pool/updates/"
"""Path of the packages of the security archive, which has a mirror of its own."""


def runtime(machine: Machine) -> Path:
    """A folder with `bin/python3`, `lib` and `share/licenses`: the runtime of all programs of a tree."""
    lock = locks.debian(machine.name)
    packages = locks.chosen(_read(lock), recipe.PACKAGES_OF_DEBIAN, str(lock))
    key = cache.digest(*(each.digest for each in packages), Path(recipe.__file__).read_bytes(), _own_text())
    return cache.made("runtimes", f"{machine.name}-{key}", lambda place: _fill(place, packages, machine))


def write_lock(machine: Machine) -> Path:
    """Chooses the newest packages of the suite."""
    with tempfile.TemporaryDirectory() as folder:
        apt = _apt_of_its_own(Path(folder), machine)
        run(("apt-get", *apt, "update", "-q"))
        shown = (run(("apt-cache", *apt, "show", "--no-all-versions", name)) for name in recipe.PACKAGES_OF_DEBIAN)
        lock = locks.debian(machine.name)
        lock.write_text(locks.written([locks.package_of(stanza) for stanza in shown]), encoding="utf-8")
    return lock


def _own_text() -> bytes:
    return Path(__file__).read_bytes()


def _read(lock: Path) -> dict[str, locks.Package]:
    try:
        return locks.read(lock.read_text(encoding="utf-8"), str(lock))
    except FileNotFoundError as error:
        raise BundleError(f"{lock} is not there; tools/lock writes it") from error


def _fill(place: Path, packages: Iterable[locks.Package], machine: Machine) -> None:
    say(f"unpacking the runtime for {machine.name}")
    fetched = {package.name: _fetched(package) for package in packages}
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        for name, archive in fetched.items():
            run(("dpkg-deb", "-x", archive, Path(folder) / name))
        for name in recipe.INTERPRETER:
            _take_python(Path(folder) / name / "usr", place)
        for name, files in recipe.libraries(machine).items():
            _take_libraries(Path(folder) / name, files, machine, place / "lib")
        for name in recipe.PACKAGES_OF_DEBIAN:
            _take_licence(Path(folder), name, place / "share/licenses")


def _fetched(package: locks.Package) -> Path:
    path = cache.root() / "debs" / package.digest
    with cache.lock(f"deb-{package.digest}"):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _fetch(package, path)
    return path


def _fetch(package: locks.Package, path: Path) -> None:
    """Fetches to a temporary name: a file named by its hash is complete."""
    said = ""
    mirrors = sorted(_mirrors(), key=lambda mirror: ("security" in mirror) != package.path.startswith(_SECURITY))
    for mirror in mirrors:
        part = path.with_suffix(".part")
        url = f"{mirror.rstrip('/')}/{package.path.replace('+', '%2b').replace(':', '%3a')}"
        try:
            run((_HELPER, *_AS_OURSELVES, "download-file", url, part, f"SHA256:{package.digest}"))
        except StepFailed as error:
            said = str(error)
            continue
        if sha256(part.read_bytes()).hexdigest() != package.digest:
            part.unlink()
            raise NotFetched(f"{mirror} gave another {package.name} {package.version} than the lock names")
        part.rename(path)
        return
    raise NotFetched(
        f"no mirror of apt gave {package.name} {package.version} ({said}); "
        "is there a network? If mirrors have a newer one by now, tools/lock takes it into the locks"
    )


def _mirrors() -> list[str]:
    """Mirrors of Debian's archive, as apt is configured here; PARTAGE_DEBIAN_MIRROR adds one in front."""
    shown = run(("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"))
    lines = [line.split(" ", 1) for line in shown.splitlines()]
    named = os.environ.get("PARTAGE_DEBIAN_MIRROR", "")
    found = [*named.split(), *dict.fromkeys(uri for origin, uri in lines if origin == "Debian")]
    if not found:
        raise NotFetched("apt knows no mirror of Debian here; PARTAGE_DEBIAN_MIRROR=URL names one")
    return found


def _apt_of_its_own(folder: Path, machine: Machine) -> tuple[str, ...]:
    """Options of apt for separate package lists of this machine type, below the folder, from the usual mirrors."""
    lines: list[str] = []
    for mirror in _mirrors():
        suites = (f"{recipe.SUITE}-security",) if "security" in mirror else (recipe.SUITE, f"{recipe.SUITE}-updates")
        lines += [f"deb [signed-by={_KEYRING}] {mirror} {suite} main\n" for suite in suites]
    sources = folder / "sources.list"
    sources.write_text("".join(lines), encoding="utf-8")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "state/status").touch()
    settings = {
        "APT::Architecture": machine.debian,
        "APT::Architectures": machine.debian,
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "state/status",
        "Dir::Cache": folder / "cache",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return (*_AS_OURSELVES, *options)


def _take_python(usr: Path, place: Path) -> None:
    library = usr / f"lib/python{recipe.PYTHON}"
    for source in sorted(library.rglob("*")):
        inside = str(source.relative_to(library))
        if source.is_file() and not source.is_symlink() and recipe.is_kept_of_python(inside):
            copy(source, place / f"lib/python{recipe.PYTHON}" / inside)
    program = usr / f"bin/python{recipe.PYTHON}"
    if program.is_file():
        copy(program, place / "bin/python3")


def _take_libraries(package: Path, names: Iterable[str], machine: Machine, into: Path) -> None:
    for name in names:
        places = [package / above / machine.triplet / name for above in ("lib", "usr/lib")]
        found = next((path for path in places if path.is_file()), None)
        if found is None:
            raise BundleError(f"{package.name} for {machine.name} has no {name}: the recipe is of another suite")
        copy(found, into / name)


def _take_licence(unpacked: Path, name: str, into: Path) -> None:
    owner = recipe.LICENCES.get(name, name)
    source = unpacked / owner / "usr/share/doc" / owner / "copyright"
    if not source.is_file():  # Python's packages link to their common dependency's
        source = unpacked / recipe.INTERPRETER[0] / "usr/share/doc" / recipe.INTERPRETER[0] / "copyright"
    copy(source, into / name / "copyright")


def copy(source: Path, target: Path) -> None:
    """Copies the content and the executable bit; no link, owner or time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
