"""The C files of a folder use each other in no circle: each can be read with those below it.

What the simulated driver uses upward is in a table of constants of `parts.c`, and is never called by name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from support.builds import ROOT, objects_of

pytestmark = pytest.mark.slow

PRELOAD, RUNTIME, SIMULATED = "isolation/preload", "oci/runtime", "simgpu/native"
TREES: Final = {PRELOAD: (), RUNTIME: (), SIMULATED: ("LTO=",)}
"""Each with what make needs to be told besides."""
TABLES: Final = "parts"
UNDEFINED: Final = "U"
CODE: Final = "T"
STAND_IN: Final = "W"
"""A weak name, as in `absent.c` for each function that is not simulated."""

Files = Mapping[str, Mapping[str, str]]
"""The symbols of each file."""


def circle(uses: Mapping[str, set[str]]) -> list[str]:
    """Files, each of which uses the previous one."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def symbols(path: Path) -> Mapping[str, str]:
    """The global names of an object, each with nm's letter for its kind."""
    listed = subprocess.check_output(["nm", "--extern-only", "--format=posix", str(path)], text=True)
    return {line.split()[0]: line.split()[1] for line in listed.splitlines()}


@cache
def folders(tree: str) -> Mapping[str, Files]:
    """The files of each folder."""
    built = objects_of(ROOT / tree, "CFLAGS=-O0", *TREES[tree], "objects")
    found: dict[str, dict[str, Mapping[str, str]]] = {}
    for path in sorted(built.rglob("*.o")):
        found.setdefault(str(path.parent.relative_to(built)), {})[path.stem] = symbols(path)
    return found


def uses_of(files: Files) -> dict[str, set[str]]:
    homes = {
        name: file for file, names in files.items() for name, kind in names.items() if kind not in (UNDEFINED, STAND_IN)
    }
    return {file: {homes[name] for name in names if name in homes} - {file, TABLES} for file, names in files.items()}


@pytest.mark.parametrize("tree", TREES)
def test_files_of_a_folder_use_each_other_in_no_circle(tree: str) -> None:
    found = {folder: circle(uses_of(files)) for folder, files in folders(tree).items()}
    assert any(len(files) > 1 for files in folders(tree).values())
    assert {folder: files for folder, files in found.items() if files} == {}


@pytest.mark.parametrize(
    ("tree", "folder", "file", "name", "home"),
    [
        (SIMULATED, "cuda", "clock", "stream_new", "streams"),
        (PRELOAD, "session", "turns", "session_has", "session"),
        (PRELOAD, "compute", "callers", "lane_of", "lanes"),
        (RUNTIME, ".", "json", "refuse", "refusal"),
    ],
)
def test_a_circle_would_be_found(tree: str, folder: str, file: str, name: str, home: str) -> None:
    """Such as a clock that uses a stream."""
    files = dict(folders(tree)[folder])
    files[file] = {**files[file], name: UNDEFINED}
    assert {file, home} <= set(circle(uses_of(files)))


@pytest.mark.parametrize("folder", ["cuda", "nvml"])
def test_tables_hold_constants_alone(folder: str) -> None:
    """A function there would be an upward call by name."""
    kinds = set(folders(SIMULATED)[folder][TABLES].values())
    assert kinds - {UNDEFINED}
    assert CODE not in kinds
