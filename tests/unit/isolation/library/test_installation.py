"""A version of the library is in a folder of its own: complete or not at all, and never rewritten."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from partage_base.version import VERSION
from partage_isolation.library import install, installation
from partage_isolation.library.errors import FileRefused, LibraryError, NotInstalled
from support.shared_objects import found_by_hash, shared_object, spare_name

SPARES = [spare_name(number) for number in range(3)]
OBJECTS: Mapping[str, bytes] = {
    "libcuda.so.1": shared_object(["cuInit", *SPARES]),
    "libcuda.so": b"alias",
    "libnvidia-ml.so.1": shared_object(["nvmlInit_v2", *SPARES]),
}
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    folder = tmp_path / "objects"
    folder.mkdir()
    for name, content in OBJECTS.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / LIBRARIES).mkdir(parents=True)
    return folder


def add_driver(root: Path, *functions: str, library: str = "libcuda.so.1") -> None:
    (root / LIBRARIES / library).write_bytes(shared_object(functions, gnu=True))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_without_a_driver_the_objects_are_installed_as_they_are(tmp_path: Path, objects: Path, root: Path) -> None:
    done = install(tmp_path / "lib", root, objects=objects)
    assert contents(done.folder) == OBJECTS
    assert (done.added, done.hidden, done.left_out) == ((), (), ())
    assert done.folder == tmp_path / "lib" / done.version
    assert done.version.startswith(f"{VERSION}-")


def test_each_library_has_the_names_of_its_own_driver(tmp_path: Path, objects: Path, root: Path) -> None:
    add_driver(root, "cuInit", "cuNew", "cuNewer")
    add_driver(root, "nvmlNew", library="libnvidia-ml.so.1")
    done = install(tmp_path / "lib", root, objects=objects)
    assert (done.added, done.hidden) == (("cuNew", "cuNewer", "nvmlNew"), ("nvmlInit_v2",))
    found = contents(done.folder)
    assert all(found_by_hash(found["libcuda.so.1"], name) for name in ("cuInit", "cuNewer"))
    assert found_by_hash(found["libnvidia-ml.so.1"], "nvmlNew")
    assert not found_by_hash(found["libnvidia-ml.so.1"], "nvmlInit_v2")


def test_a_library_that_the_driver_has_not_keeps_its_names(tmp_path: Path, objects: Path, root: Path) -> None:
    add_driver(root, "nvmlInit_v2", library="libnvidia-ml.so.1")
    assert contents(install(tmp_path / "lib", root, objects=objects).folder) == OBJECTS


def test_names_beyond_the_spares_are_told(tmp_path: Path, objects: Path, root: Path) -> None:
    add_driver(root, *(f"cuNew{number}" for number in range(5)))
    assert install(tmp_path / "lib", root, objects=objects).left_out == ("cuNew3", "cuNew4")


def test_another_driver_makes_another_version_and_the_first_stays(tmp_path: Path, objects: Path, root: Path) -> None:
    first = install(tmp_path / "lib", root, objects=objects)
    add_driver(root, "cuNew")
    second = install(tmp_path / "lib", root, objects=objects)
    assert first.version != second.version
    assert contents(first.folder) == OBJECTS


def test_what_is_there_is_not_written_again(tmp_path: Path, objects: Path, root: Path) -> None:
    first = install(tmp_path / "lib", root, objects=objects)
    before = {path.name: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    inode = first.folder.stat().st_ino
    assert install(tmp_path / "lib", root, objects=objects) == first
    assert {path.name: path.stat().st_mtime_ns for path in first.folder.iterdir()} == before
    assert first.folder.stat().st_ino == inode


def test_every_user_may_read_it_whatever_the_umask_is(tmp_path: Path, objects: Path, root: Path) -> None:
    before = os.umask(0o077)
    try:
        done = install(tmp_path / "usr/local/lib/partage", root, objects=objects)
    finally:
        os.umask(before)
    folders = [done.folder, *list(done.folder.parents)[:4]]
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o755] * 5
    assert {path.stat().st_mode & 0o777 for path in done.folder.iterdir()} == {0o644}


@pytest.mark.parametrize("broken", ["write", "fsync", "rename"])
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, objects: Path, root: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        if broken == "write":
            patch.setattr(installation, "_write", full)
        else:
            patch.setattr(*((os, "fsync", full) if broken == "fsync" else (Path, "rename", full)))
        with pytest.raises(NotInstalled, match="No space left"):
            install(tmp_path / "lib", root, objects=objects)
    assert list((tmp_path / "lib").iterdir()) == []
    assert contents(install(tmp_path / "lib", root, objects=objects).folder) == OBJECTS


def test_files_that_somebody_changed_are_told_and_left(tmp_path: Path, objects: Path, root: Path) -> None:
    done = install(tmp_path / "lib", root, objects=objects)
    (done.folder / "libcuda.so").write_bytes(b"other")
    with pytest.raises(NotInstalled, match="is not what was installed"):
        install(tmp_path / "lib", root, objects=objects)
    assert contents(done.folder)["libcuda.so"] == b"other"


def test_a_driver_that_is_no_shared_object_is_refused(tmp_path: Path, objects: Path, root: Path) -> None:
    (root / LIBRARIES / "libcuda.so.1").write_bytes(b"\x7fELF and then nothing")
    with pytest.raises(FileRefused, match=r"libcuda\.so\.1: it ends before"):
        install(tmp_path / "lib", root, objects=objects)
    assert not (tmp_path / "lib").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, objects: Path, root: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotInstalled, match="cannot be written"):
        install(tmp_path / "file" / "lib", root, objects=objects)


def test_objects_that_are_not_there_are_told(tmp_path: Path, root: Path) -> None:
    with pytest.raises(LibraryError, match="is not in"):
        install(tmp_path / "lib", root, objects=tmp_path)
