"""A configuration file is read, or an error says what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.resolution import TomlFile
from partage_base.daemon.sources import read_toml


def _refusal(path: Path) -> str:
    with pytest.raises(BadConfiguration) as caught:
        read_toml(path, required=True)
    (line,) = caught.value.mistakes
    assert str(path) in line
    return line


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "partage.toml"


def test_a_file_is_read_with_its_tables(path: Path) -> None:
    path.write_text('[common]\nnode_name = "ñ"\n')
    assert read_toml(path, required=True) == TomlFile(str(path), {"common": {"node_name": "ñ"}})


def test_a_missing_file_that_nobody_named_is_no_mistake(path: Path) -> None:
    assert read_toml(path, required=False) == TomlFile(str(path))


def test_a_missing_file_that_was_named_is_a_mistake(path: Path) -> None:
    assert "there is no such file" in _refusal(path)


def test_bad_toml_is_refused_with_line_and_column(path: Path) -> None:
    path.write_text("[crishim]\ntries = = 3\n")
    assert "line 2, column 9" in _refusal(path)


def test_a_file_that_is_not_utf_8_is_refused_with_the_place(path: Path) -> None:
    path.write_bytes(b"a = '\xff'")
    assert "byte 5 is not UTF-8" in _refusal(path)


def test_a_folder_is_no_file(path: Path) -> None:
    path.mkdir()
    assert "Is a directory" in _refusal(path)


def test_a_file_that_we_may_not_read_is_refused(path: Path) -> None:
    """Root can read everything, so the test drops to nobody for a while."""
    path.touch(0)
    before = os.geteuid()
    os.seteuid(before or 65534)
    try:
        assert "Permission denied" in _refusal(path)
    finally:
        os.seteuid(before)


def test_a_file_that_can_not_be_read_to_its_end_is_refused() -> None:
    assert "Input/output error" in _refusal(Path("/proc/self/mem"))


def test_a_file_below_a_file_is_refused_and_not_taken_for_missing(path: Path) -> None:
    path.touch()
    assert "Not a directory" in _refusal(path / "partage.toml")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "1" * 10_000, "a = 1\na = 2", "\0"])
def test_hostile_toml_is_refused_as_any_other_mistake(path: Path, text: str) -> None:
    path.write_text(text)
    assert "as TOML" in _refusal(path)


def test_a_file_that_never_ends_is_not_read_to_its_end() -> None:
    assert "longer than 1048576 bytes" in _refusal(Path("/dev/zero"))
