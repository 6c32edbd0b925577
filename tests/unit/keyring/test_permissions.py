"""Allowed owners and modes of key files. The rules are tested with made-up results of `stat`, then with real files."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest

from partage_base.keyring import KeyFolders, KeyRefused, load_public_keys, load_signing_key
from partage_base.keyring.permissions import Us, check_folder, check_private, check_public
from unit.keyring.samples import STRANGER, as_root, new_pair, not_as_root, write_public

FILE: Final = Path("/keys/file")
US: Final = Us(uid=1000, gid=1000, groups=frozenset({100, 2000}), account_uid=990, account_gid=991)


def status(mode: int, uid: int = 1000, gid: int = 1000) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 1, 1, 1, uid, gid, 119, 0, 0, 0))


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_a_private_file_that_only_we_and_our_group_read_is_good(mode: int) -> None:
    check_private(FILE, status(mode), US)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604, 0o666, 0o700, 0o620, 0o444, 0o4600, 0o000])
def test_a_private_file_that_others_reach_is_refused_with_what_is_allowed(mode: int) -> None:
    with pytest.raises(
        KeyRefused, match=rf"/keys/file: has mode {mode:04o} .* allowed: 0600, or 0640 for our own group"
    ):
        check_private(FILE, status(mode), US)


def test_the_group_named_partage_may_read_a_private_file() -> None:
    check_private(FILE, status(0o640, gid=991), US)


def test_a_group_that_we_are_in_by_the_way_may_not_read_a_private_file_of_ours() -> None:
    with pytest.raises(KeyRefused, match="has mode 0640 and group 100"):
        check_private(FILE, status(0o640, gid=100), US)


def test_a_secret_that_kubelet_mounted_with_fs_group_is_good() -> None:
    check_private(FILE, status(0o440, uid=0, gid=2000), US)


def test_a_file_of_root_for_a_group_that_is_not_ours_is_refused() -> None:
    with pytest.raises(KeyRefused, match="group 3000"):
        check_private(FILE, status(0o440, uid=0, gid=3000), US)


@pytest.mark.parametrize("uid", [1000, 0, 990])
def test_files_of_ours_of_root_and_of_the_user_partage_are_good(uid: int) -> None:
    check_private(FILE, status(0o600, uid=uid), US)
    check_public(FILE, status(0o644, uid=uid), US)


def test_a_file_of_somebody_else_is_refused_whatever_its_mode() -> None:
    for check in (check_private, check_public):
        with pytest.raises(KeyRefused, match=r"belongs to user 54321; allowed: us \(1000\), root, or the user partage"):
            check(FILE, status(0o600, uid=STRANGER), US)


def test_no_user_of_that_name_is_no_hole() -> None:
    with pytest.raises(KeyRefused):
        check_private(FILE, status(0o640, gid=STRANGER), Us(uid=1000, gid=1000))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_public_file_that_others_can_write_is_refused_since_they_could_sign(mode: int) -> None:
    with pytest.raises(KeyRefused, match="others can replace it"):
        check_public(FILE, status(mode), US)


def test_a_folder_that_others_can_write_is_good_only_where_it_is_sticky_or_mounted_read_only() -> None:
    check_folder(FILE, status(0o755), US, read_only=False)
    check_folder(FILE, status(0o1777, uid=0), US, read_only=False)
    check_folder(FILE, status(0o777, uid=0), US, read_only=True)
    with pytest.raises(KeyRefused, match="others can replace the keys in it"):
        check_folder(FILE, status(0o777, uid=0), US, read_only=False)


def test_modes_are_looked_at_though_root_can_open_everything(folders: KeyFolders) -> None:
    key = new_pair(folders)
    folders.private_file(key).chmod(0o644)
    with pytest.raises(KeyRefused, match="has mode 0644"):
        load_signing_key(folders.private)


def test_the_mode_of_the_file_behind_a_link_counts(folders: KeyFolders, tmp_path: Path) -> None:
    key = new_pair(folders)
    file = folders.private_file(key)
    behind = file.rename(tmp_path / "behind")
    file.symlink_to(behind)
    assert load_signing_key(folders.private).id == key
    behind.chmod(0o640 | stat.S_IROTH)
    with pytest.raises(KeyRefused, match="has mode 0644"):
        load_signing_key(folders.private)


def test_a_marker_that_others_can_write_is_refused(folders: KeyFolders) -> None:
    new_pair(folders)
    (folders.private / "signing").chmod(0o666)
    with pytest.raises(KeyRefused, match="signing: has mode 0666"):
        load_signing_key(folders.private)


def test_a_folder_that_others_can_write_gives_no_key(tmp_path: Path) -> None:
    write_public(tmp_path)
    tmp_path.chmod(0o777)
    loaded = load_public_keys(tmp_path)
    assert (len(loaded.keys), len(loaded.faults)) == (0, 1)
    tmp_path.chmod(0o1777)
    assert len(load_public_keys(tmp_path).keys) == 1


def test_a_config_map_which_is_writable_for_all_but_mounted_read_only_is_good(small_disk: Path) -> None:
    file = write_public(small_disk)
    small_disk.chmod(0o777)
    assert not load_public_keys(small_disk).keys
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert list(load_public_keys(small_disk).keys) == [file.stem]


@as_root
def test_a_stranger_who_adds_a_file_to_a_sticky_folder_gains_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    good, theirs = write_public(tmp_path), write_public(tmp_path)
    os.chown(theirs, STRANGER, STRANGER)
    loaded = load_public_keys(tmp_path)
    assert list(loaded.keys) == [good.stem]
    assert "belongs to user 54321" in str(loaded.faults[0])


@not_as_root
def test_a_file_that_we_may_not_open_is_a_fault_of_that_file(tmp_path: Path) -> None:
    good, closed = write_public(tmp_path), write_public(tmp_path)
    closed.chmod(0)
    loaded = load_public_keys(tmp_path)
    assert list(loaded.keys) == [good.stem]
    assert "Permission denied" in str(loaded.faults[0])
