"""A program that opens the driver's file by its path, as many that search for it do, gets the same as by name."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from isolation.library.stage import VERSION, Stage, compiled

pytestmark = pytest.mark.slow  # compiles


def versioned(stage: Stage, folder: Path, name: str) -> Path:
    """The driver's file as installed by drivers: its version in its name, and links to it."""
    library = folder / f"{name}.535.161.08"
    shutil.copy(stage.driver / f"{name}.1", library)
    (folder / f"{name}.1").symlink_to(library.name)
    return library


@pytest.mark.parametrize("link", ["libcuda.so.535.161.08", "libcuda.so.1"])
@pytest.mark.parametrize("has_other", [True, False])
def test_a_path_of_the_driver_is_the_library(stage: Stage, tmp_path: Path, link: str, has_other: bool) -> None:  # noqa: FBT001
    """If no other driver is found, the driver is the file that was named."""
    versioned(stage, tmp_path, "libcuda.so")
    said = stage.lines("opens", tmp_path / link, driver=has_other)
    assert said == [f"{VERSION} {stage.place}/lib/libcuda.so.1"]


def test_the_drivers_file_by_another_name_is_the_drivers(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "driver.so").symlink_to(stage.driver / "libcuda.so.1")
    assert stage.lines("opens", tmp_path / "driver.so") == [f"{VERSION} {tmp_path}/driver.so"]


def test_so_is_a_path_of_nvml_and_its_name_without_a_version(stage: Stage, tmp_path: Path) -> None:
    """The driver of these tests lacks the first function, and the library does not."""
    said = ["13 123.40 trouble"]
    assert stage.lines("manages", versioned(stage, tmp_path, "libnvidia-ml.so")) == said
    assert stage.lines("manages", "libnvidia-ml.so") == said


def test_a_program_with_a_dlopen_of_its_own_is_captured_too(stage: Stage, tmp_path: Path) -> None:
    """The same for its other arguments: the program itself, and whether something is loaded."""
    path = versioned(stage, tmp_path, "libcuda.so")
    assert stage.lines("wraps", path) == [f"{VERSION} {stage.place}/lib/libcuda.so.1 1 1 3"]


def test_a_file_that_is_not_there_is_not_found(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "libcuda.so.1"
    command = [stage.programs / "opens", path]
    done = subprocess.run(command, env=stage.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == f"{path}: cannot open shared object file: No such file or directory\n"


def test_what_others_open_is_found_by_their_own_paths(stage: Stage, tmp_path: Path) -> None:
    """The dynamic linker searches by the caller, and still sees the real one."""
    (tmp_path / "beside").mkdir()
    compiled("early.c", tmp_path / "beside/early.so", "-shared", "-fPIC", "-ldl")
    compiled("asks.c", tmp_path / "asks.so", "-shared", "-fPIC", "-ldl", "-Wl,-rpath,$ORIGIN/beside")
    assert stage.lines("runpath", tmp_path / "asks.so", "early.so") == ["found"]
