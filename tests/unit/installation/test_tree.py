"""A tree is installed completely or not at all, and stays in place if the next installation fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_cli.installation.errors import BadTree, StepFailed
from partage_cli.installation.tree import check, place, point, pointed
from support.trees import PROGRAM, a_tree
from unit.installation.made import a_host, put


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return a_tree(tmp_path / "bundle", "1.0", {"systemd/a b.service": b"[Unit]\n"})


def test_a_tree_is_copied_to_its_place_and_pointed_to(tree: Path, tmp_path: Path) -> None:
    host, _ = a_host(tmp_path / "root")
    home = place(host.root, tree)
    point(host.root, "1.0")
    assert (home, pointed(host.root)) == (tmp_path / "root/opt/partage/1.0", "1.0")
    assert (tmp_path / "root/opt/partage/current/bin/partage").read_bytes() == PROGRAM
    assert place(host.root, tree) == place(host.root, home) == home
    assert sorted(path.name for path in home.parent.iterdir()) == ["1.0", "current"]


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (lambda tree: (tree / "bin/partage").unlink(), "bin/partage is missing"),
        (lambda tree: (tree / "bin/partage").write_text("other"), "not the file of the manifest"),
        (lambda tree: (tree / "bin/partage").chmod(0o4755), "4755 for 0755"),
        (lambda tree: (tree / "bin/more").touch(), "bin/more is not in the manifest"),
        (lambda tree: (tree / "bin/more").symlink_to("/etc/shadow"), "bin/more is not in the manifest"),
        (lambda tree: put(tree, "MANIFEST", "0644 " + "0" * 64 + " ../x\n"), "line 1"),
        (lambda tree: put(tree, "VERSION", "../x\n"), "says no version"),
        (lambda tree: put(tree, "VERSION", "current\n"), "says no version"),
        (lambda tree: (tree / "MANIFEST").unlink(), "is not there"),
    ],
)
def test_a_tree_that_is_not_whole_is_refused_with_the_file(tree: Path, breaks: object, words: str) -> None:
    assert callable(breaks)
    breaks(tree)
    with pytest.raises(BadTree, match=words):
        check(tree)


def test_a_tree_in_its_place_that_was_damaged_is_made_whole_again(tree: Path, tmp_path: Path) -> None:
    host, _ = a_host(tmp_path / "root")
    home = place(host.root, tree)
    (home / "bin/partage").write_text("damaged")
    place(host.root, tree)
    assert check(home) == "1.0"


def test_what_is_in_place_stays_where_the_next_cannot_be_copied(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = a_host(tmp_path / "root")
    home = place(host.root, tree)
    (home / "bin/partage").write_text("damaged, and yet in force")
    monkeypatch.setattr("shutil.copytree", full_disk)
    with pytest.raises(OSError, match="No space"):
        place(host.root, tree)
    assert (home / "bin/partage").read_text() == "damaged, and yet in force"


def test_without_room_nothing_is_written_and_it_says_how_much_there_must_be(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partage_cli.installation.tree.SPARE_BYTES", 1 << 60)
    with pytest.raises(StepFailed, match=r"MiB must be free at .*/opt/partage, and \d+ MiB are; nothing was changed"):
        place(tmp_path / "root", tree)
    assert list((tmp_path / "root/opt/partage").iterdir()) == []


def full_disk(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")
