"""Fetches packages of a Debian release, also another than the machine's, and keeps some of their files; installs none.

apt fetches them with separate sources, lists and cache. So it verifies the archive's signature, and the machine's own
apt is unaffected. The machine's sources determine the archive's address, mostly a mirror.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from rig.errors import BuildFailed, MachineUnfit
from rig.programs.cache import Cache
from rig.programs.recipes import Archived, Package
from rig.programs.steps import Step, Task, run, spent

MACHINE: Final = "x86_64"
"""The architecture of the packages."""
LIBRARIES: Final = f"usr/lib/{MACHINE}-linux-gnu"
_ARCHIVE: Final = "/debian/"


def archived_key(recipe: Archived) -> str:
    return f"{recipe.name}-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:8]}"


def archived(recipe: Archived, cache: Cache) -> dict[str, Path]:
    """Paths of its files, also before they exist. The entry has the layout of a root file system."""
    folder = cache.entry(archived_key(recipe)) / LIBRARIES
    return {f"{package.wanted}@{recipe.name}": folder / package.wanted for package in recipe.packages}


def fetch(recipe: Archived, cache: Cache, task: Task) -> None:
    """Make the cache entry; needs its lock. Raises `MachineUnfit` if the packages can't be fetched."""
    source = _source(recipe)
    task.teller.line(f"{task.title}: fetching with apt, log {task.log}")
    key = archived_key(recipe)
    with cache.workplace(key) as work:
        options = _apt_of_its_own(work, source)
        made = work / "made" / LIBRARIES
        made.mkdir(parents=True)
        try:
            _apt(task, work, *options, "update", "-q")
            for package in recipe.packages:
                _apt(task, work, *options, "download", "-q", f"{package.name}={recipe.version}")
        except BuildFailed as error:
            why = str(error).partition("\n")[0]
            raise MachineUnfit(f"{recipe.name} {recipe.version} can't be had from {source}: {why}") from error
        for package in recipe.packages:
            _unpack(package, work, made, task)
        cache.publish(work / "made", key)
    task.teller.line(f"{task.title}: done, {spent(task.seconds)}")


def _source(recipe: Archived) -> str:
    """The line for apt's sources: the machine's archive, the release and its section."""
    if os.uname().machine != MACHINE:
        raise MachineUnfit(f"{recipe.name}: its packages are for {MACHINE}, and this machine is {os.uname().machine}")
    if shutil.which("apt-get") is None:
        raise MachineUnfit(f"{recipe.name}: this machine has no apt-get, which fetches and checks packages of Debian")
    asked = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    archives = [uri for uri in said.splitlines() if uri.endswith(_ARCHIVE)]
    if not archives:
        raise MachineUnfit(f"{recipe.name}: none of apt's sources here is an archive of Debian")
    return f"deb {archives[0]} {recipe.release} {recipe.section}"


def _apt_of_its_own(work: Path, source: str) -> tuple[str, ...]:
    (work / "sources.list").write_text(f"{source}\n")
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    settings = {
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": work / "lists",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    return tuple(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))


def _apt(task: Task, work: Path, *words: str) -> None:
    run(task, Step(("apt-get", *words), work, {**os.environ, "LC_ALL": "C"}))


def _unpack(package: Package, work: Path, made: Path, task: Task) -> None:
    archive = next(work.glob(f"{package.name}_*.deb"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != package.sha256:
        raise task.failed(f"{archive.name} has the digest {digest}, and should have {package.sha256}")
    files = work / package.name
    run(task, Step(("dpkg-deb", "-x", archive.name, files.name), work, {**os.environ, "LC_ALL": "C"}))
    found = list(files.glob(package.inside))
    if len(found) != 1:
        raise task.failed(f"{package.inside} is not once in {archive.name}")
    shutil.move(found[0], made / package.wanted)
    (made / package.wanted).chmod(0o755)
