"""Installs and removes the program that engines call in place of runc, with its settings beside it.

Engines refer to it by a link, which a new version replaces by a rename. Containers hold none of its files open.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.compilation import Compilation, cache_folder
from partage_base.files import write_whole
from partage_base.version import VERSION
from partage_plugins.errors import PartageError

NAME: Final = "partage-oci"
FOLDER: Final = "usr/local/lib/partage/oci"
_CURRENT: Final = "current"
_SETTINGS: Final = "partage-oci.conf"
_CHECKOUT: Final = Path(__file__).parents[3]
_MODE: Final = 0o755


class NotBuilt(PartageError):
    """The program can't be compiled."""


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """The settings file beside the program."""

    socket: Path
    """The agent's."""
    broker: Path
    runtime: Path
    """The runtime that creates the containers."""
    guard: bool
    """Whether cards are removed from containers that ask for no share."""

    @property
    def text(self) -> str:
        guard = "yes" if self.guard else "no"
        return f"socket {self.socket}\nbroker {self.broker}\nruntime {self.runtime}\nguard {guard}\n"


def built() -> Path:
    """The program, compiled unless it is in the package. Raises `NotBuilt`."""
    in_checkout = _CHECKOUT / "oci/runtime"
    is_checkout = (in_checkout / "Makefile").is_file()
    if is_checkout:
        sources = in_checkout
    else:
        from importlib.resources import files  # noqa: PLC0415  not in a checkout

        sources = Path(str(files("partage_oci"))) / "runtime"
        carried = sources.with_name("programs") / os.uname().machine / NAME
        if carried.is_file():
            return carried
    builds = cache_folder("oci", _CHECKOUT if is_checkout else None)
    return Compilation(NAME, sources, builds, NotBuilt, is_shared=is_checkout).built() / NAME


class InstalledProgram:
    """The installed program below the root. Every method that writes may raise `OSError`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self.path = self._folder / _CURRENT / NAME

    @property
    def is_there(self) -> bool:
        return os.access(self.path, os.X_OK)

    def put(self, program: Path, settings: ProgramSettings) -> None:
        version = self._folder / VERSION
        version.mkdir(parents=True, exist_ok=True)
        write_whole(version / _SETTINGS, settings.text.encode(), mode=0o644)
        write_whole(version / NAME, program.read_bytes(), mode=_MODE)
        link, next_link = self._folder / _CURRENT, self._folder / f"{_CURRENT}.next"
        next_link.unlink(missing_ok=True)
        next_link.symlink_to(VERSION)
        next_link.replace(link)

    def remove(self) -> None:
        if self._folder.exists():
            shutil.rmtree(self._folder)
