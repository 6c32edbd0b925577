"""What triggers an early look of the advertiser: changes in folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from partage_advertiser.inspection import FOLDERS, FolderWatch


def aged(folder: Path) -> None:
    """Make the folder look old: file times are coarse, and tests are quick."""
    os.utime(folder, ns=(1, 1))


@pytest.fixture
def noticing(tmp_path: Path) -> FolderWatch:
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True)
        aged(tmp_path / name)
    return FolderWatch(tmp_path)


def test_nothing_is_noticed_where_nothing_happens(noticing: FolderWatch) -> None:
    assert not noticing.anything()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_that_comes_or_goes_is_noticed_once(noticing: FolderWatch, tmp_path: Path, name: str) -> None:
    file = tmp_path / name / "by-hand"
    for change in (file.touch, file.unlink):
        change()
        assert noticing.anything()
        assert not noticing.anything()
        aged(tmp_path / name)
        noticing.anything()


def test_a_record_that_is_renamed_into_its_place_is_noticed(noticing: FolderWatch, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("{}")
    (tmp_path / "new").rename(tmp_path / FOLDERS[1] / "kubelet_internal_checkpoint")
    assert noticing.anything()


def test_a_folder_that_is_made_later_is_noticed(tmp_path: Path) -> None:
    noticing = FolderWatch(tmp_path)
    assert not noticing.anything()
    (tmp_path / FOLDERS[0]).mkdir(parents=True)
    assert noticing.anything()
