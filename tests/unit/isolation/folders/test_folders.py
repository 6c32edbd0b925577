"""A container's folder is complete, or the container is refused with one clear error."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from partage_isolation.errors import NoFolder
from partage_isolation.store.folders import PRELOAD_TEXT, Folders
from partage_plugins.api.names import ContainerKey
from support.sockets import connected

KEY = ContainerKey("ab" * 16)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def made(root: Path) -> Path:
    Folders(root).make(KEY).close()
    return root / "run/partage/containers" / KEY


def test_it_holds_socket_preload_file_and_a_place_for_the_library(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert {path.name: mode_of(path) for path in folder.iterdir()} == {"broker": 0o666, "preload": 0o644, "lib": 0o755}
    assert (mode_of(folder), mode_of(folder.parent)) == (0o755, 0o700)
    assert (folder / "preload").read_text() == PRELOAD_TEXT
    assert PRELOAD_TEXT.splitlines() == [
        "/run/partage/lib/libcuda.so.1",
        "/run/partage/lib/libcuda.so",
        "/run/partage/lib/libnvidia-ml.so.1",
    ]


def test_the_modes_are_right_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        folder = made(tmp_path)
    finally:
        os.umask(before)
    assert [mode_of(folder / name) for name in ("broker", "preload", "lib", ".")] == [0o666, 0o644, 0o755, 0o755]


def test_made_again_the_mounted_files_are_the_same_and_the_socket_is_new(tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = {name: (folder / name).stat().st_ino for name in ("preload", "lib")}
    with Folders(tmp_path).make(KEY) as listening, connected(folder / "broker"):
        listening.accept()[0].close()
    assert {name: (folder / name).stat().st_ino for name in ("preload", "lib")} == before


@pytest.mark.parametrize("left", ["nothing", "folder", "lib", ".broker.123", "broker", "preload", "half preload"])
def test_what_a_killed_broker_left_half_made_is_finished(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "run/partage/containers" / KEY
    folder.mkdir(parents=True)
    if left == "lib":
        (folder / "lib").mkdir()
    elif left != "folder":
        (folder / left.rsplit(maxsplit=1)[-1]).write_text("half" if left.startswith("half") else "")
    assert made(tmp_path) == folder
    assert {path.name for path in folder.iterdir()} >= {"broker", "preload", "lib"}
    assert not list(folder.glob(".*"))
    assert (folder / "preload").read_text() == PRELOAD_TEXT


def test_something_else_in_its_place_is_refused(tmp_path: Path) -> None:
    parent = tmp_path / "run/partage/containers"
    parent.mkdir(parents=True)
    (parent / KEY).write_text("a file")
    with pytest.raises(NoFolder, match="no folder is there"):
        made(tmp_path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    parent = tmp_path / "run/partage/containers"
    parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (parent / KEY).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoFolder):
        made(tmp_path)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path)
    os.chown(folder, 1000, 1000)
    with pytest.raises(NoFolder, match="belongs to user 1000"):
        made(tmp_path)


def test_a_full_disk_is_one_clear_error_and_leaves_no_open_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(NoFolder, match="No space left on device"):
            made(tmp_path)
    assert made(tmp_path).is_dir()


def test_a_path_that_is_too_long_for_a_socket_is_no_obstacle(tmp_path: Path) -> None:
    folder = made(tmp_path / ("x" * 100))
    assert stat.S_ISSOCK((folder / "broker").lstat().st_mode)
    assert len(str(folder / "broker")) > 108


def test_removed_nothing_is_left(tmp_path: Path) -> None:
    made(tmp_path)
    folders = Folders(tmp_path)
    folders.remove(KEY)
    folders.remove(KEY)
    assert folders.names() == frozenset()
    assert Folders(tmp_path / "nowhere").names() == frozenset()


def test_the_mounts_name_what_was_made(tmp_path: Path) -> None:
    folder = made(tmp_path)
    mounts = Folders(tmp_path).mounts(KEY, "/usr/local/lib/partage/1")
    assert [(mount.container_path, mount.host_path, mount.readonly) for mount in mounts] == [
        ("/run/partage", str(folder), True),
        ("/run/partage/lib", "/usr/local/lib/partage/1", True),
        ("/etc/ld.so.preload", str(folder / "preload"), True),
        ("/etc/ld-nix.so.preload", str(folder / "preload"), True),
    ]


def test_sockets_are_of_packets(tmp_path: Path) -> None:
    with Folders(tmp_path).make(KEY) as listening:
        assert listening.type & socket.SOCK_SEQPACKET
