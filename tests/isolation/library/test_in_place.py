"""The library at the driver's own path, and the driver elsewhere: nothing is preloaded, and no way bypasses it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from isolation.library.stage import VERSION, Stage

pytestmark = [
    pytest.mark.slow,  # compiles
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux"),
]

_MOUNTS: Final = 'set -e; mount -t tmpfs none /run; mkdir -p /run/partage/driver; mount --bind "$1" /run/partage/driver'


@pytest.fixture
def inside(stage: Stage) -> Sequence[str]:
    """A mount namespace with the driver where containers have it, which the dynamic linker does not search."""
    script = f'{_MOUNTS}; shift; exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "-", str(stage.driver)]


@pytest.fixture
def system(stage: Stage, tmp_path: Path) -> Path:
    """A folder of system libraries, with ours among them."""
    folder = tmp_path / "x86_64-linux-gnu"
    shutil.copytree(stage.place / "lib", folder)
    return folder


@pytest.mark.parametrize("library", ["libcuda.so.1", "libcuda.so"])
@pytest.mark.parametrize("way", ["local", "global", "deepbind"])
def test_the_linker_finds_it_by_name(stage: Stage, system: Path, inside: Sequence[str], library: str, way: str) -> None:
    said = stage.lines("opens", library, way, before=inside, LD_PRELOAD="", LD_LIBRARY_PATH=str(system))
    assert said == [f"{VERSION} {system}/libcuda.so.1"]


def test_a_program_that_was_linked_with_the_driver_is_bound_to_it(
    stage: Stage, system: Path, inside: Sequence[str]
) -> None:
    said = stage.lines("needed", before=inside, LD_PRELOAD="", LD_LIBRARY_PATH=str(system))
    assert said == [f"{VERSION} {system}/libcuda.so.1"]


def test_the_drivers_absolute_path_is_ours(stage: Stage, system: Path, inside: Sequence[str]) -> None:
    path = system / "libcuda.so.1"
    assert stage.lines("opens", path, before=inside, LD_PRELOAD="", LD_LIBRARY_PATH="") == [f"{VERSION} {path}"]


def test_so_is_a_namespace_of_its_own(stage: Stage, system: Path, inside: Sequence[str]) -> None:
    said = stage.lines("namespaces", "libcuda.so.1", before=inside, LD_PRELOAD="", LD_LIBRARY_PATH=str(system))
    assert said == [f"{VERSION} {system}/libcuda.so.1"]


def test_nvml_finds_its_own_driver(stage: Stage, system: Path, inside: Sequence[str]) -> None:
    said = stage.lines("manages", before=inside, LD_PRELOAD="", LD_LIBRARY_PATH=str(system))
    assert said == ["13 123.40 trouble"]


def test_two_hundred_threads_and_a_fork_find_it_too(stage: Stage, system: Path, inside: Sequence[str]) -> None:
    early = stage.programs / "early.so"
    path = str(system)
    said = stage.lines("forks", "parent", before=inside, LD_PRELOAD="", LD_LIBRARY_PATH=path)
    assert said == [f"child {VERSION}", f"executed {VERSION}", f"parent {VERSION}"]
    preload = str(system / "libcuda.so.1")
    assert stage.lines("threads", early, before=inside, LD_PRELOAD=preload, LD_LIBRARY_PATH=path) == [str(VERSION)]
