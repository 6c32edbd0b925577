"""The programs of others that a machine needs: found where administrators put them, else got from Debian's archive.

containerd is unpacked and not installed, for installed it would start a service, and change Docker's. What else is
missing is installed as its package: runc, the network plugins, iptables; a compiler only where something is built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from partage_cli.machine.places import PROGRAMS
from partage_cli.machine.setup.decision import Programs
from partage_cli.machine.setup.errors import Missing
from partage_cli.machine.setup.network import PLUGINS
from partage_cli.machine.setup.services import PATH

CONTAINERD: Final = ("containerd", "containerd-shim-runc-v2", "ctr")
COMPILER: Final = ("cc", "make")
_COMPILER_PACKAGES: Final = ("gcc", "libc6-dev", "make")
_CNI_FOLDERS: Final = ("usr/lib/cni", "opt/cni/bin", "usr/libexec/cni")
_PACKAGES: Final = {"runc": "runc", "cni": "containernetworking-plugins", "iptables": "iptables", "ip": "iproute2"}
_LOCK_WAITS: Final = ("-o", "DPkg::Lock::Timeout=300")
_SHOWN: Final = 300
_ASKED_S: Final = 10.0
Say = Callable[[str], None]


class Found(NamedTuple):
    programs: Programs
    installed: tuple[str, ...]
    """Packages that were not there before."""


class Finder:
    """Looks on this machine, and gets what is missing where that is possible."""

    def __init__(self, root: Path, say: Say) -> None:
        self._root, self._say = root, say
        self.installed: list[str] = []

    def find(self, containerd: Path | None) -> Found:
        """All of them; raises `Missing`."""
        missing = {name: package for name, package in _PACKAGES.items() if self._path(name) is None}
        if missing:
            self._install(missing.values(), ", ".join(missing))
        programs = Programs(
            containerd=str(self._containerd(containerd)), runc=self._required("runc"), cni=self._required("cni")
        )
        for name in ("iptables", "ip"):
            self._required(name)
        return Found(programs, tuple(self.installed))

    def version(self, program: str) -> str:
        """What it says of itself, or nothing."""
        try:
            done = subprocess.run(  # noqa: S603  that is to be run anyway
                (program, "--version"), capture_output=True, text=True, errors="replace", check=False, timeout=_ASKED_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout

    def lacks_compiler(self) -> bool:
        return any(shutil.which(tool) is None for tool in COMPILER)

    def get_compiler(self) -> None:
        self._install(_COMPILER_PACKAGES, "a C compiler")

    def _path(self, name: str) -> str | None:
        if name == "cni":
            folders = (self._root / folder for folder in _CNI_FOLDERS)
            return next((str(each) for each in folders if all((each / plugin).is_file() for plugin in PLUGINS)), None)
        found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{PATH}")
        return None if found is None else str(Path(found).absolute())

    def _required(self, name: str) -> str:
        found = self._path(name)
        if found is None:
            raise Missing(f"package {_PACKAGES[name]} is installed, and {name} cannot be found; is it whole?")
        return found

    def _containerd(self, named: Path | None) -> Path:
        if named is not None:
            return _whole(named.absolute())
        own = self._root / PROGRAMS / "usr/bin/containerd"
        installed = self._path("containerd")
        for path in (None if installed is None else Path(installed), own):
            if path is not None and _lacks(path) is None:
                return path
        self._unpack("containerd")
        return _whole(own)

    def _unpack(self, package: str) -> None:
        """Below the folder of programs, all or nothing."""
        target = self._root / PROGRAMS
        _need_apt([package], is_possible=True)
        self._say(
            f"unpacking Debian's package {package} into {target}; it is not installed, and Docker's stays as it is"
        )
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=target.parent) as folder:
            fetch = ("apt-get", "download", "-q", package)
            if _failure(fetch, folder) is not None:  # the lists may be missing, or older than the archive
                self._update()
                self._run(fetch, folder)
            (archive,) = Path(folder).glob("*.deb")
            self._run(("dpkg-deb", "-x", archive.name, "files"), folder)
            shutil.rmtree(target, ignore_errors=True)
            (Path(folder) / "files").rename(target)
            target.chmod(0o755)

    def _install(self, packages: Iterable[str], what: str) -> None:
        names = tuple(packages)
        _need_apt(names, is_possible=self._root == Path("/"))
        self._say(f"installing {what}: apt-get install {' '.join(names)}")
        install = ("apt-get", "install", "-q", "-y", "--no-install-recommends", *_LOCK_WAITS, *names)
        if _failure(install, "/") is not None:
            self._update()
            self._run(install, "/")
        self.installed += names

    def _update(self) -> None:
        self._run(("apt-get", "update", "-q", *_LOCK_WAITS), "/")

    def _run(self, argv: Sequence[str], folder: str) -> None:
        if (why := _failure(argv, folder)) is not None:
            raise Missing(
                f"`{' '.join(argv[:3])} …` failed: {why}; is there a network? Install it by hand, or try again"
            )


def _need_apt(packages: Sequence[str], *, is_possible: bool) -> None:
    """A package is installed on the machine itself, never below another root."""
    if shutil.which("apt-get") is None or not is_possible:
        named = " ".join(packages)
        raise Missing(f"this machine lacks what Debian's packages {named} have; install it, then try again")


def _failure(argv: Sequence[str], folder: str) -> str | None:
    """The last words of a program that failed."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603  apt's and dpkg's
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return (lines[-1] if lines else f"status {done.returncode}")[:_SHOWN]


def _whole(path: Path) -> Path:
    if (lacking := _lacks(path)) is not None:
        raise Missing(f"there is no {lacking}; --containerd names the program, with its shim and ctr beside it")
    return path


def _lacks(containerd: Path) -> Path | None:
    """What is not there of the three that belong together."""
    needed = (containerd, *(containerd.with_name(name) for name in CONTAINERD[1:]))
    return next((path for path in needed if not os.access(path, os.X_OK) or path.is_dir()), None)
