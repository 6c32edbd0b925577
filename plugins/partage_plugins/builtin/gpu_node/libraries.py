"""Finds the driver's libraries, and looks again only when one of their folders has changed.

A container waits while this looks: at some seventy places the first time, at five when nothing changed. A folder that
changed within the last moments is not trusted to show a change that comes right after.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Final

from partage_plugins.builtin.gpu_node.raw import LIBRARIES

_SETTLED_NS: Final = 1_000_000_000
_Facts = tuple[tuple[int, int, int] | None, ...]


class Libraries:
    """What was found last, and when that still holds."""

    def __init__(self) -> None:
        self._facts: tuple[str, _Facts] | None = None
        self._found: Mapping[str, str] = {}

    def of(self, home: str, triplet: str, version: str) -> Mapping[str, str]:
        """Paths by the library's name; a library that is not there is left out."""
        folders = [f"{home}/{name}" for name in (f"usr/lib/{triplet}", "usr/lib64", "usr/lib", "lib64", "lib")]
        now = time.time_ns()
        facts = (version, tuple(map(_facts, folders)))
        if facts != self._facts:
            self._found = dict(_looked(folders, version))
            settled = all(each is None or each[2] < now - _SETTLED_NS for each in facts[1])
            self._facts = facts if settled else None
        return self._found


def _looked(folders: list[str], version: str) -> Iterator[tuple[str, str]]:
    for library in LIBRARIES:
        paths = (f"{folder}/{library}.so.{version}" for folder in folders)
        found = next(filter(os.path.isfile, paths), None)
        if found is not None:
            yield library, found


def _facts(folder: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116  as plain strings these looks cost half
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns
