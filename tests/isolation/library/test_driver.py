"""The real driver is found by its path, in a fixed order, and never this library in its place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from isolation.library.stage import VERSION, Stage, compiled, copy_library

pytestmark = pytest.mark.slow  # compiles


def loaded(stage: Stage, **options: str) -> list[str]:
    return [line.split()[0] for line in stage.lines("opens", "libcuda.so.1", driver=False, **options)]


def test_where_there_is_no_driver_programs_are_told_so(stage: Stage) -> None:
    assert stage.lines("without", driver=False) == [
        "cuInit 100",
        "errno 77",
        "cuDeviceGet 500",
        "cuGetErrorString 1 nothing",
        "cuGetProcAddress 500 nothing",
        "dlerror nothing",
    ]
    assert stage.lines("manages", driver=False) == ["12 1 none The driver's library was not found"]


def test_the_folder_beside_the_librarys_own_is_looked_at_first(beside: Stage, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    compiled("management.c", tmp_path / "other/libcuda.so.1", "-shared", "-fPIC")  # has no version
    assert loaded(beside, LD_LIBRARY_PATH=str(tmp_path / "other")) == [str(VERSION)]


def test_the_folders_of_the_environment_are_looked_at_in_order(stage: Stage, tmp_path: Path) -> None:
    path = f"{tmp_path}/none:$ORIGIN::{tmp_path};{stage.driver}:/"
    assert loaded(stage, LD_LIBRARY_PATH=path) == [str(VERSION)]


def test_this_library_is_not_taken_for_the_driver(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/libcuda.so.1").symlink_to(stage.place / "lib/libcuda.so.1")
    copy_library(tmp_path / "copied")
    (tmp_path / "again").symlink_to(tmp_path / "copied/lib")
    path = f"{stage.place}/lib:{tmp_path}/linked:{tmp_path}/copied/lib:{tmp_path}/again"
    assert loaded(stage, LD_LIBRARY_PATH=path) == ["-500"]
    assert loaded(stage, LD_LIBRARY_PATH=f"{path}:{stage.driver}") == [str(VERSION)]


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF\x01\x01\x01"])
def test_files_that_cannot_be_loaded_are_passed_over(stage: Stage, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(content)
    assert loaded(stage, LD_LIBRARY_PATH=f"{tmp_path}:{stage.driver}") == [str(VERSION)]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")
def test_the_dynamic_linkers_cache_is_asked(stage: Stage, tmp_path: Path) -> None:
    etc = tmp_path / "etc"
    etc.mkdir()
    (tmp_path / "conf").write_text(f"{stage.driver}\n")
    subprocess.run(["ldconfig", "-C", etc / "ld.so.cache", "-f", tmp_path / "conf"], check=True)
    inside = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        f'mount --bind {etc} /etc && exec "$@"',
        "-",
    ]
    assert stage.lines("opens", "libcuda.so.1", driver=False, before=inside)[0].startswith(f"{VERSION} ")
