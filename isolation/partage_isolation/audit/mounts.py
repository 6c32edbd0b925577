"""The installed files on the node, and what a process sees at the paths where they are mounted.

A running container keeps the library that it was started with, so every version below the library folder is valid. The
kernel's identification of a file in maps is found by mapping the file. The runtime mounts at the target of an image's
links, so a path that looks wrong is checked there. Only links on the container's root are followed: a mount of the
process's own may block its reader. All functions block on /proc.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from partage_isolation.audit.listing import RuntimeContainer
from partage_isolation.audit.proofs import (
    Expected,
    FileId,
    MountLine,
    Source,
    led_to,
    mapped_as,
    mounted_from,
    mounts,
    topmost,
    wrong_places,
)
from partage_isolation.library.current import CURRENT
from partage_isolation.store.folders import (
    INSIDE,
    LIBRARY,
    NIX_PRELOAD_INSIDE,
    OBJECTS,
    PARENT,
    PRELOAD,
    PRELOAD_INSIDE,
    inside_of,
)

_SELF: Final = Path("/proc/self")
_log: Final = structlog.get_logger()

MOST_MOUNTS: Final = 128 << 10
"""Bytes of mountinfo: a container has some dozens of mounts, of a few hundred bytes each."""
MOST_MAPS: Final = 8 << 20
"""Bytes of maps: enough for the kernel's default number of mappings, with paths of usual length."""


class TooLong(Exception):
    """Not all of it was read, so no conclusion is possible."""


def read_bounded(path: Path, most: int) -> str:
    """Read a file whose length a process controls, up to a bound, so that it can't delay the inspection of others.

    Raises `TooLong`, or `OSError` where the process is gone or dying.
    """
    with path.open("rb") as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise TooLong
    return raw.decode(errors="replace")


class InstalledFiles:
    """The installed files, as of the last `look`."""

    def __init__(self, library_folder: Path, root: Path) -> None:
        self._library_folder, self._containers = library_folder, root / PARENT
        self._known: dict[tuple[Path, int, int], FileId] = {}
        self._versions: tuple[Path, ...] = ()
        self._mountinfo = ""
        self._sources: tuple[Source, frozenset[Source], Source] = (("", ""), frozenset(), ("", ""))
        """Sources of the containers' folders, of the library in each version, and of the folder of versions."""

    def look(self) -> None:
        """Refresh: versions and the broker's own mounts change."""
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

    def expected(self, container: RuntimeContainer) -> tuple[Expected, ...]:
        (device, parent), libraries, versions = self._sources
        folder = f"{parent}/{container.key}"
        preload = frozenset({(device, f"{folder}/{PRELOAD}")})
        preloads = Expected(PRELOAD_INSIDE, preload), Expected(NIX_PRELOAD_INSIDE, preload, may_be_absent=True)
        own = frozenset({(device, folder)})
        if container.claim is None:
            library = Expected(f"{INSIDE}/{LIBRARY}", libraries, frozenset({versions}))
            return Expected(INSIDE, own), library, *preloads
        files = (_file(libraries, name) for name in OBJECTS)
        return Expected(inside_of(container.claim), own), *files, *preloads

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
            _log.error(
                "the broker's own maps lack the library; processes can't be checked for it",
                file=str(path),
            )
            return
        present[place] = found


def _file(libraries: AbstractSet[Source], name: str) -> Expected:
    """One of the library's files, in some version, mounted by itself."""
    sources = frozenset((device, f"{root}/{name}") for device, root in libraries)
    return Expected(f"{INSIDE}/{LIBRARY}/{name}", sources, libraries)


def _is_version(path: Path) -> bool:
    return path.name != CURRENT and path.is_dir()


def _source(seen: Sequence[MountLine], path: Path) -> Source:
    device, root = mounted_from(seen, str(path.resolve())) or ("", "")
    return device, root.rstrip("/")


def _mapped(path: Path) -> FileId | None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE):
        return mapped_as((_SELF / "maps").read_text(errors="replace"), str(path))


class Places:
    def __init__(self, installed: InstalledFiles, proc: Path) -> None:
        self._installed, self._proc = installed, proc
        self._known: dict[tuple[str, str], tuple[str, ...] | TooLong] = {}
        """Wrong paths by the runtime's container id and mount namespace, cached for one inspection."""

    def look(self) -> None:
        self._known.clear()

    def wrong(self, pid: int, container: RuntimeContainer, *, with_links: bool) -> tuple[str, ...] | None:
        """Wrong paths in a process; None if they can't be read. Raises `TooLong`."""
        process = self._proc / str(pid)
        try:
            which = container.id, str((process / "ns/mnt").readlink())
            wrong = self._known.get(which)
            if wrong is None:
                wrong = self._looked(process, container, with_links=with_links)
        except OSError:  # it is gone, or is dying
            return None
        if wrong is not None:
            self._known[which] = wrong
        if isinstance(wrong, TooLong):
            raise TooLong
        return wrong

    def _looked(
        self, process: Path, container: RuntimeContainer, *, with_links: bool
    ) -> tuple[str, ...] | TooLong | None:
        try:
            seen = mounts(read_bounded(process / "mountinfo", MOST_MOUNTS))
        except TooLong as error:
            return error
        return self._judged(process, seen, container, with_links=with_links)

    def _judged(
        self, process: Path, seen: Sequence[MountLine], container: RuntimeContainer, *, with_links: bool
    ) -> tuple[str, ...] | None:
        expected = self._installed.expected(container)
        wrong = wrong_places(seen, expected)
        if not wrong or not with_links:
            return wrong
        led = [replace(one, point=led_to(one.point, lambda path: _link(process, seen, path))) for one in expected]
        wrong = wrong_places(seen, led) or ()
        return tuple(one.point for one, at in zip(expected, led, strict=True) if at.point in wrong)


def _link(process: Path, seen: Sequence[MountLine], path: str) -> str | None:
    """Target of a link of the image; None for everything else."""
    on = topmost(seen, path)
    if on is None or on.point != "/":
        return None
    try:
        return str((process / f"root{path}").readlink())
    except OSError:
        return None
