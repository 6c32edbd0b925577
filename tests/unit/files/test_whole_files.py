"""A file is written completely or not at all, for all errors of the system and any existing file."""

from __future__ import annotations

import errno
import os
import resource
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from partage_base.files import UNDER_WAY_S, UNFINISHED, clear_unfinished, write_whole


@contextmanager
def no_file_longer_than(size: int) -> Generator[None]:
    """Limits file sizes as a full disk does: a write is partial, and the next one fails."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_where_only_a_part_has_room_the_old_file_stands_and_nothing_is_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"old")
    with no_file_longer_than(4096), pytest.raises(OSError, match=r"/a'$") as refused:
        write_whole(tmp_path / "a", b"x" * 10_000)
    assert refused.value.errno == errno.EFBIG
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_what_the_system_takes_in_parts_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:7]))
    write_whole(tmp_path / "a", b"0123456789" * 10)
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 10


def test_the_mode_holds_whatever_the_umask_and_it_is_private_by_default(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "open", b"", mode=0o644)
        os.umask(0)
        write_whole(str(tmp_path / "own"), b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("hers")
    (tmp_path / "a").symlink_to("elsewhere")
    write_whole(tmp_path / "a", b"ours", synced=True)
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "hers"


def test_what_it_answers_is_the_file_that_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = write_whole(tmp_path / "a", b"x")
    assert os.path.samestat(status, (tmp_path / "a").stat())
    monkeypatch.chdir(tmp_path)
    assert write_whole("b", b"x", synced=True).st_size == 1


def test_a_folder_that_is_not_there_is_named_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere/a") as refused:
        write_whole(tmp_path / "nowhere/a", b"x")
    assert UNFINISHED not in str(refused.value)


def test_what_killed_writers_left_is_cleared_and_what_is_being_written_stays(tmp_path: Path) -> None:
    for name, age_s in (("old", 2 * UNDER_WAY_S), ("young", 1)):
        left = tmp_path / f"{UNFINISHED}{name}"
        left.touch()
        at = time.time() - age_s
        os.utime(left, (at, at))
    (tmp_path / "a").touch()
    clear_unfinished(tmp_path, tmp_path / "nowhere", tmp_path / "a")
    assert names(tmp_path) == [f"{UNFINISHED}young", "a"]
