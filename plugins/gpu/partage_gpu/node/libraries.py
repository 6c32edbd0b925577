"""Finds the driver's libraries, and looks again only when one of their folders has changed.

A container waits while this looks: at some seventy places the first time, at five when nothing changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from partage_gpu.node.raw import LIBRARIES
from partage_gpu.node.stability import Facts, are_settled, facts_of


class Libraries:
    """What was found last, and when that still holds."""

    def __init__(self) -> None:
        self._facts: tuple[str, list[Facts]] | None = None
        self._found: Mapping[str, str] = {}

    def of(self, home: str, triplet: str, version: str) -> Mapping[str, str]:
        """Paths by the library's name; a library that is not there is left out."""
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
