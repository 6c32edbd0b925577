"""The keys that currently verify: changes take effect at once, unchanged files are not reread."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import Keyring, LoadedKeys, keys, load_public_keys
from unit.keyring.samples import write_public


class Reader:
    """Counts reads of the folder, and may act right after one."""

    def __init__(self) -> None:
        self.times = 0
        self.afterwards: list[Callable[[], object]] = []

    def __call__(self, folder: Path) -> LoadedKeys:
        self.times += 1
        loaded = load_public_keys(folder)
        if self.afterwards:
            self.afterwards.pop()()
        return loaded


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader()
    monkeypatch.setattr(keys, "load_public_keys", reader)
    return reader


@pytest.fixture
def old_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats this test's files as older than the granularity of timestamps."""
    monkeypatch.setattr(keys, "_SETTLED_NS", -(10**12))


def test_a_folder_that_does_not_change_is_read_once(tmp_path: Path, reader: Reader, old_enough: None) -> None:
    write_public(tmp_path)
    keyring = Keyring(tmp_path)
    first = keyring.current()
    assert len(first.keys) == 1
    assert all(keyring.current() is first for _ in range(10))
    assert reader.times == 1


def test_a_file_that_may_still_change_unseen_is_read_again_and_gives_the_same_object(
    tmp_path: Path, reader: Reader
) -> None:
    write_public(tmp_path)
    keyring = Keyring(tmp_path)
    assert keyring.current() is keyring.current()
    assert reader.times == 2


def test_a_new_key_verifies_at_once(tmp_path: Path, old_enough: None) -> None:
    first = write_public(tmp_path)
    keyring = Keyring(tmp_path)
    assert keyring.current().keys.keys() == {first.stem}
    second = write_public(tmp_path)
    assert keyring.current().keys.keys() == {first.stem, second.stem}


def test_a_removed_key_stops_at_once_even_the_last_one(tmp_path: Path, old_enough: None) -> None:
    files = [write_public(tmp_path) for _ in range(2)]
    keyring = Keyring(tmp_path)
    for file in files:
        assert file.stem in keyring.current().keys
        file.unlink()
        assert file.stem not in keyring.current().keys
    assert "holds no public key" in str(keyring.current().faults[0])


def test_a_key_whose_file_went_bad_stops_at_once(tmp_path: Path, old_enough: None) -> None:
    file = write_public(tmp_path)
    keyring = Keyring(tmp_path)
    assert keyring.current().keys
    file.chmod(0o666)
    assert not keyring.current().keys
    file.chmod(0o644)
    assert keyring.current().keys


def test_a_file_that_was_rewritten_in_place_within_one_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    file = write_public(tmp_path)
    content, written = file.read_bytes(), file.stat()
    keyring = Keyring(tmp_path)
    assert keyring.current().keys
    file.write_bytes(content.replace(b"PUBLIC", b"PUBLIX"))
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert not keyring.current().keys


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ESTALE, errno.EMFILE])
def test_a_folder_that_can_not_be_read_verifies_nothing_and_is_tried_again(
    code: int, tmp_path: Path, old_enough: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_public(tmp_path)
    keyring = Keyring(tmp_path)
    assert keyring.current().keys

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", broken)
        now = keyring.current()
        assert not now.keys
        assert str(now.faults[0]).startswith(f"{tmp_path}: can't be read: {os.strerror(code)}")
        assert keyring.current() is now  # reported once
    assert keyring.current().keys


def test_a_folder_that_went_away_verifies_nothing_until_it_is_back(tmp_path: Path, old_enough: None) -> None:
    folder = tmp_path / "keys.d"
    write_public(folder)
    keyring = Keyring(folder)
    assert keyring.current().keys
    folder.rename(tmp_path / "away")
    assert not keyring.current().keys
    (tmp_path / "away").rename(folder)
    assert keyring.current().keys


def test_kubelet_exchanging_all_files_by_one_link_is_noticed(tmp_path: Path, old_enough: None) -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    old = write_public(tmp_path / "..1", key)
    write_public(tmp_path / "..2", key).write_bytes(write_public(tmp_path / "..3", other).read_bytes())
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / old.name).symlink_to(f"..data/{old.name}")
    keyring = Keyring(tmp_path)
    assert keyring.current().keys
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert "holds the key" in str(keyring.current().faults[0])


def test_a_folder_that_changes_while_it_is_read_is_read_again(tmp_path: Path, reader: Reader, old_enough: None) -> None:
    first, second = write_public(tmp_path), write_public(tmp_path)
    reader.afterwards.append(first.unlink)
    keyring = Keyring(tmp_path)
    assert keyring.current().keys.keys() == {second.stem}
    assert reader.times == 2


def test_a_folder_that_changes_all_the_time_is_read_again_at_the_next_call(
    tmp_path: Path, reader: Reader, old_enough: None
) -> None:
    keyring = Keyring(tmp_path)
    reader.afterwards += [lambda: write_public(tmp_path)] * 10
    keyring.current()
    assert 1 < reader.times < 10  # it gave up for this time
    reader.afterwards.clear()
    assert len(keyring.current().keys) == len(list(tmp_path.iterdir()))


def test_faults_are_a_new_object_only_when_they_are_others(tmp_path: Path, old_enough: None) -> None:
    write_public(tmp_path)
    (tmp_path / "bad.pub").write_bytes(b"")
    keyring = Keyring(tmp_path)
    first = keyring.current()
    (tmp_path / "README").write_text("changes the folder, but no key")
    assert keyring.current() is first
    (tmp_path / "bad.pub").write_bytes(b"x")
    assert "is not PEM" in str(keyring.current().faults[0])
