"""Every way to reach the driver by name leads to this library, and through it to the driver."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from isolation.library.stage import VERSION, Stage
from partage_isolation.library import install

pytestmark = pytest.mark.slow  # compiles


def captured(stage: Stage) -> list[str]:
    return [f"{VERSION} {stage.place}/lib/libcuda.so.1"]


@pytest.mark.parametrize("library", ["libcuda.so.1", "libcuda.so"])
@pytest.mark.parametrize("way", ["local", "global", "deepbind"])
def test_a_library_that_is_opened_by_name_is_ours(stage: Stage, library: str, way: str) -> None:
    assert stage.lines("opens", library, way) == captured(stage)


def test_the_default_symbols_are_ours(stage: Stage) -> None:
    assert stage.lines("opens", "-") == captured(stage)


def test_a_program_that_was_linked_with_the_driver_is_bound_to_us(stage: Stage) -> None:
    assert stage.lines("needed") == captured(stage)


def test_nvml_is_ours_too(stage: Stage) -> None:
    assert stage.lines("manages") == ["13 123.40 trouble"]  # the driver of these tests lacks the first function


@pytest.mark.parametrize("name", ["cuTexRefSetAddress2D_v3", "cuOfTomorrow"])
def test_a_name_without_a_hook_passes_on_all_its_arguments(stage: Stage, tmp_path: Path, name: str) -> None:
    """The second name is none of ours: it was assigned a spare export."""
    shutil.copytree(stage.driver, tmp_path / "root/usr/lib64")
    done = install(tmp_path / "library", tmp_path / "root", objects=stage.place / "lib")
    assert done.added == ("cuOfTomorrow", "nvmlOfTomorrow")
    preload = ":".join(str(done.folder / path.name) for path in stage.objects)
    total = sum(number * number for number in range(1, 18)) + (name == "cuOfTomorrow")
    assert stage.lines("arguments", name, LD_PRELOAD=preload) == [f"{total} {total} "]


def test_a_spare_name_that_was_given_to_nobody_answers_that_there_is_no_such_function(stage: Stage) -> None:
    name = "partage_spare_ff".ljust(63, "_")
    assert stage.lines("arguments", name) == ["500 500 "]


def test_the_drivers_own_calls_of_what_it_exports_are_not_taken_for_the_programs(stage: Stage) -> None:
    assert stage.lines("inner")[0] == "by itself"


def test_an_address_that_is_no_symbols_is_known_by_the_drivers_own_word(stage: Stage) -> None:
    assert stage.lines("inner")[1:] == ["ours", "nothing"]
