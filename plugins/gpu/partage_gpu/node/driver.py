"""Finds the installed driver: device nodes, libraries, programs.

A container waits for this. So paths are plain strings here: `Path` would double the time. Results are cached, and only
the parts that this container depends on are checked again.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from partage_gpu.driver_root import installed_root
from partage_gpu.node.minors import CardNodes, is_device
from partage_gpu.node.raw import CONTROL, CONTROLS, LIBRARIES, PERSISTENCE, PROGRAMS, InstalledDriver
from partage_gpu.node.stability import Facts, are_settled, facts_of
from partage_plugins.api.gpu import Card, GpuPart
from partage_plugins.errors import Refused

_VERSION: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){1,3}", re.ASCII)
_TRIPLET: Final = f"{os.uname().machine}-linux-gnu"


class DriverFiles:
    """The driver of one node, with the cached results."""

    def __init__(self, root: Path, driver_root: str, *, host: str = "/") -> None:
        """`host`: where the host's root is, below the root; paths found there are returned without that prefix."""
        self._said = str(root / driver_root.lstrip("/"))
        self._host = _text_of(root / host.lstrip("/"))
        self._untold = self._host if host.strip("/") else ""
        self._libraries = Libraries()
        self._nodes = CardNodes()

    def installed(self, part: GpuPart, wanted: Iterable[Card]) -> InstalledDriver:
        """The driver's files for these cards; of the cards' device nodes only the wanted ones were checked."""
        if not _VERSION.fullmatch(part.driver):
            raise Refused(f"partage: {part.driver!r:.80} in this node's inventory is no version of an NVIDIA driver")
        host, home = self._host, installed_root(self._said).rstrip("/")
        devices = f"{home}/dev" if is_device(f"{home}/dev/{CONTROL}") else f"{host}/dev"
        controls = {name: f"{devices}/{name}" for name in CONTROLS}
        programs = {name: f"{home}/usr/bin/{name}" for name in PROGRAMS}
        persistence = f"{home}/{PERSISTENCE}"
        return InstalledDriver(
            version=part.driver,
            root=self._told(home) or "/",
            triplet=_TRIPLET,
            cards=self._all_told(self._nodes.of(part.cards, (home, host), devices, wanted)),
            controls=self._all_told({name: path for name, path in controls.items() if is_device(path)}),
            libraries=self._all_told(self._libraries.of(home, _TRIPLET, part.driver)),
            programs=self._all_told({name: path for name, path in programs.items() if _is_file(path)}),
            persistence=self._told(persistence) if _is_socket(persistence) else None,
        )

    def _told(self, path: str) -> str:
        return path.removeprefix(self._untold)

    def _all_told(self, paths: Mapping[str, str]) -> Mapping[str, str]:
        return {name: self._told(path) for name, path in paths.items()} if self._untold else paths


def _text_of(folder: Path) -> str:
    """The folder as a prefix for a slash and a name; empty for the root itself."""
    return str(folder).rstrip("/")


def _is_file(path: str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  see above


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116  see above
    except OSError:
        return False


class Libraries:
    """The last result, and the facts on which it depends."""

    def __init__(self) -> None:
        self._facts: tuple[str, list[Facts]] | None = None
        self._found: Mapping[str, str] = {}

    def of(self, home: str, triplet: str, version: str) -> Mapping[str, str]:
        """Paths by the library's name; a missing library is left out."""
        folders = [f"{home}/{name}" for name in (f"usr/lib/{triplet}", "usr/lib64", "usr/lib", "lib64", "lib")]
        facts = (version, list(map(facts_of, folders)))
        if facts != self._facts:
            settled = are_settled(facts[1])
            self._found = dict(_looked(folders, version))
            self._facts = facts if settled else None
        return self._found


def _looked(folders: list[str], version: str) -> Iterator[tuple[str, str]]:
    for library in LIBRARIES:
        paths = (f"{folder}/{library}.so.{version}" for folder in folders)
        found = next(filter(os.path.isfile, paths), None)
        if found is not None:
            yield library, found
