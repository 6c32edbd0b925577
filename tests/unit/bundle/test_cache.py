"""An entry of the cache is whole, or not there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from partage_bundle import cache


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARTAGE_BUNDLE_CACHE", str(tmp_path))
    return tmp_path


def fill(place: Path) -> None:
    (place / "file").write_text("whole")


def test_what_fails_leaves_no_entry_and_the_next_try_makes_it(root: Path) -> None:
    def fail(place: Path) -> None:
        fill(place)
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        cache.made("trees", "one", fail)
    assert not (root / "trees/one").exists()
    assert list((root / "work").iterdir()) == []
    assert (cache.made("trees", "one", fill) / "file").read_text() == "whole"


def test_an_entry_is_made_once() -> None:
    def never(place: Path) -> None:
        raise AssertionError(place)

    assert cache.made("trees", "one", fill) == cache.made("trees", "one", never)


def test_what_was_used_since_yesterday_is_kept() -> None:
    old, used = (cache.made("trees", name, fill) for name in ("old", "used"))
    before = time.time() - 2 * 24 * 3600
    for entry in (old, used):
        os.utime(entry, (before, before))
    cache.made("trees", "used", fill)
    cache.forget_old("trees")
    assert used.is_dir()
    assert not old.exists()


def test_parts_that_are_divided_in_another_way_have_another_name() -> None:
    assert cache.digest("ab", "c") != cache.digest("a", "bc")


def test_a_digest_of_files_changes_with_content_name_and_mode(tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "a.c").write_text("int a;")
    seen = {cache.digest_of_files([folder])}
    (folder / "a.c").chmod(0o755)
    seen.add(cache.digest_of_files([folder]))
    (folder / "a.c").rename(folder / "b.c")
    seen.add(cache.digest_of_files([folder]))
    (folder / "b.c").write_text("int b;")
    seen.add(cache.digest_of_files([folder]))
    assert len(seen) == 4
