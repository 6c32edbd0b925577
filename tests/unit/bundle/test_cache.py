"""A cache entry is complete or absent."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from partage_bundle import cache

NOW = 1_000_000_000.0


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


def an_entry(name: str, *, hours: float, size: int = 10) -> cache.Entry:
    """An entry that was last requested `hours` ago."""
    return cache.Entry(Path(name), size, NOW - hours * 3600)


@pytest.mark.parametrize(
    ("most", "gone"),
    [
        (50, []),
        (49, ["oldest"]),
        (31, ["oldest", "old", "large"]),
        (0, ["oldest", "old", "large"]),
    ],
)
def test_entries_go_from_the_oldest_on_until_the_rest_fits_and_none_in_use(most: int, gone: list[str]) -> None:
    entries = [
        an_entry("just now", hours=0),
        an_entry("oldest", hours=30),
        an_entry("large", hours=3, size=20),
        an_entry("old", hours=29, size=5),
        an_entry("in use", hours=1.9, size=5),
    ]
    assert [str(path) for path in cache.surplus(entries, most, NOW)] == gone


def test_a_full_cache_makes_room_when_an_entry_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    old, used = (cache.made("trees", name, fill) for name in ("old", "used"))
    before = time.time() - 2 * 24 * 3600
    for entry in (old, used):
        os.utime(entry, (before, before))
    cache.made("trees", "used", fill)
    monkeypatch.setattr(cache, "MOST_BYTES", 2 * len("whole"))
    new = cache.made("layers", "new", fill)
    assert (old.exists(), used.is_dir(), new.is_dir()) == (False, True, True)


def test_what_is_linked_is_counted_once(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    ground = cache.made("grounds", "one", fill)
    before = time.time() - 2 * 24 * 3600
    os.utime(ground, (before, before))
    monkeypatch.setattr(cache, "MOST_BYTES", len("whole"))
    cache.made("trees", "one", lambda place: os.link(ground / "file", place / "file"))
    assert ground.is_dir()


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
