"""Knows what is installed on the node and how it looks from a container: the library's files, and what is mounted.

A running container keeps the library that it was started with, so every version that lies below the library folder
counts. How the kernel names a file in maps is learned by mapping it.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from partage_isolation.broker.folders import INSIDE, LIBRARY, OBJECTS, PARENT, PRELOAD, PRELOAD_INSIDE
from partage_isolation.library.current import CURRENT
from partage_isolation.watching.proofs import Expected, FileId, MountLine, Source, mapped_as, mounted_from, mounts
from partage_plugins.vocabulary.names import ContainerKey

_SELF: Final = Path("/proc/self")
_log: Final = structlog.get_logger()


class Installed:
    """As of the last `look`."""

    def __init__(self, library_folder: Path, root: Path) -> None:
        self._library_folder, self._containers = library_folder, root / PARENT
        self._known: dict[tuple[Path, int, int], FileId] = {}
        self._versions: tuple[Path, ...] = ()
        self._mountinfo = ""
        self._sources: tuple[Source, frozenset[Source], Source] = (("", ""), frozenset(), ("", ""))
        """Of the containers' folders, of the library in each version, and of the folder of versions."""

    def look(self) -> None:
        """Anew: versions come and go, and so do our own mounts."""
        mountinfo, versions = (_SELF / "mountinfo").read_text(errors="replace"), self._present()
        if (mountinfo, versions) != (self._mountinfo, self._versions):
            seen = mounts(mountinfo)
            libraries = frozenset(_source(seen, version) for version in versions)
            self._sources = _source(seen, self._containers), libraries, _source(seen, self._library_folder)
            self._mountinfo, self._versions = mountinfo, versions
        present = dict[tuple[Path, int, int], FileId]()
        for folder in self._versions:
            with contextlib.suppress(OSError):
                self._learn(folder.resolve() / OBJECTS[0], present)
        self._known = present

    @property
    def libraries(self) -> frozenset[FileId]:
        """The library's core, in each version."""
        return frozenset(self._known.values())

    def expected(self, key: ContainerKey) -> tuple[Expected, ...]:
        """What a container sees of us."""
        (device, parent), libraries, versions = self._sources
        return (
            Expected(INSIDE, frozenset({(device, f"{parent}/{key}")})),
            Expected(f"{INSIDE}/{LIBRARY}", libraries, frozenset({versions})),
            Expected(PRELOAD_INSIDE, frozenset({(device, f"{parent}/{key}/{PRELOAD}")})),
        )

    def _present(self) -> tuple[Path, ...]:
        try:
            return tuple(sorted(folder for folder in self._library_folder.iterdir() if _is_version(folder)))
        except FileNotFoundError:
            return ()

    def _learn(self, path: Path, present: dict[tuple[Path, int, int], FileId]) -> None:
        state = path.stat()
        place = path, state.st_dev, state.st_ino
        found = self._known.get(place) or _mapped(path)
        if found is None:
            _log.error("the library's file does not show in our own maps, so it is proved for nobody", file=str(path))
            return
        present[place] = found


def _is_version(path: Path) -> bool:
    return path.name != CURRENT and path.is_dir()


def _source(seen: Sequence[MountLine], path: Path) -> Source:
    device, root = mounted_from(seen, str(path.resolve())) or ("", "")
    return device, root.rstrip("/")


def _mapped(path: Path) -> FileId | None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE):
        return mapped_as((_SELF / "maps").read_text(errors="replace"), str(path))
