"""A layer is the same bytes for the same entries, and holds exactly what was asked for."""

from __future__ import annotations

import io
import tarfile

import pytest

from rig.images.layers import Entry, File, Folder, HardLink, SymbolicLink, archive

ENTRIES: list[Entry] = [
    Folder("/bin"),
    File("/bin/tool", b"tool", 0o4755),
    HardLink("/bin/other", "/bin/tool"),
    Folder("/tmp", 0o1777),  # noqa: S108 - in an image
]


def members(layer: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return {member.name: member for member in tar.getmembers()}


def test_the_same_entries_give_the_same_bytes() -> None:
    assert archive(ENTRIES) == archive(ENTRIES)


def test_nothing_of_the_machine_gets_into_a_layer() -> None:
    for member in members(archive(ENTRIES)).values():
        assert (member.uid, member.gid, member.uname, member.gname, member.mtime) == (0, 0, "", "", 0)


def test_modes_are_kept_bit_by_bit() -> None:
    modes = {name: member.mode for name, member in members(archive(ENTRIES)).items()}
    assert modes == {"bin": 0o755, "bin/tool": 0o4755, "bin/other": 0o4755, "tmp": 0o1777}


def test_a_hard_link_says_the_mode_of_its_file_since_unpacking_it_sets_the_mode_of_both() -> None:
    link = members(archive(ENTRIES))["bin/other"]
    assert (link.islnk(), link.linkname, link.mode) == (True, "bin/tool", 0o4755)


def test_a_symbolic_link_leads_wherever_it_says() -> None:
    link = members(archive([SymbolicLink("/run", "/var/run")]))["run"]
    assert (link.issym(), link.linkname) == (True, "/var/run")


def test_a_link_to_what_does_not_come_before_it_is_refused() -> None:
    with pytest.raises(ValueError, match=r"/bin/a links to /bin/b, which does not come before it"):
        archive([HardLink("/bin/a", "/bin/b"), File("/bin/b", b"")])


@pytest.mark.parametrize("path", ["bin/tool", "/", "", "/bin/../etc/passwd", "/bin//tool", "/bin/./tool", "/bin/"])
def test_a_path_that_is_not_plainly_inside_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"is no absolute path of a file in an image"):
        archive([File(path, b"")])
