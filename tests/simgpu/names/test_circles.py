"""No cyclic dependencies between files of the simulated driver: each can be read with those below it.

Functions used upward are in a table of constants of `parts.c`, and are never called by name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from support.builds import OUT, ROOT, objects_of

pytestmark = pytest.mark.slow

SIMULATED: Final = ROOT / "simgpu/native"
FOLDERS: Final = ("common", "cuda", "daemon", "nvml")
TABLES: Final = "parts"
UNDEFINED: Final = "U"
CODE: Final = "T"
STAND_IN: Final = "W"
"""A weak name, as in `absent.c` for each function that is not simulated."""


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


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Mapping[str, str]]]:
    """The symbols of each object, by folder and file."""
    sources = [path.relative_to(SIMULATED) for folder in FOLDERS for path in sorted((SIMULATED / folder).glob("*.c"))]
    wanted = (f"{OUT}/objects/{path.with_suffix('.o')}" for path in sources)
    built = objects_of(SIMULATED, "CFLAGS=-O0", "LTO=", *wanted)
    found: dict[str, dict[str, Mapping[str, str]]] = {folder: {} for folder in FOLDERS}
    for path in sources:
        found[path.parts[0]][path.stem] = symbols(built / path.with_suffix(".o"))
    return found


def uses_of(files: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
    homes = {
        name: file for file, names in files.items() for name, kind in names.items() if kind not in (UNDEFINED, STAND_IN)
    }
    return {file: {homes[name] for name in names if name in homes} - {file, TABLES} for file, names in files.items()}


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_of_a_folder_use_each_other_in_no_circle(
    objects: dict[str, dict[str, Mapping[str, str]]], folder: str
) -> None:
    uses = uses_of(objects[folder])
    assert len(uses) > 1
    assert circle(uses) == []


def test_a_circle_would_be_found(objects: dict[str, dict[str, Mapping[str, str]]]) -> None:
    """Such as a clock that uses a stream."""
    files = dict(objects["cuda"])
    files["clock"] = {**files["clock"], "stream_new": UNDEFINED}
    assert {"clock", "streams"} <= set(circle(uses_of(files)))


@pytest.mark.parametrize("folder", ["cuda", "nvml"])
def test_tables_hold_constants_alone(objects: dict[str, dict[str, Mapping[str, str]]], folder: str) -> None:
    """A function there would be an upward call by name."""
    kinds = set(objects[folder][TABLES].values())
    assert kinds - {UNDEFINED}
    assert CODE not in kinds
